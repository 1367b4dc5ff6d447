"""S3 endpoint, region and credentials from AWS's environment variables and profile files.

    endpoint      AWS_ENDPOINT_URL_S3, else AWS_ENDPOINT_URL; neither with AWS_IGNORE_CONFIGURED_ENDPOINT_URLS=true
    region        AWS_REGION, else AWS_DEFAULT_REGION, else that of the profile
    credentials   AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY and AWS_SESSION_TOKEN, else the profile's, else the machine's role
    profile       AWS_PROFILE, else "default", in AWS_SHARED_CREDENTIALS_FILE (~/.aws/credentials) and
                  AWS_CONFIG_FILE (~/.aws/config)

They apply where the connection's options leave a setting out. The two S3 clients each support a different part of this, so it is
resolved here, once, for both. Credentials of the environment are the exception: both clients read these themselves, so that no
pickled task contains them.
"""

from __future__ import annotations

import configparser
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from lakelet.errors import InvalidError


@dataclass(frozen=True, slots=True)
class AwsEnvironment:
    """The resolved settings; the keys are those of a profile, None where clients find credentials themselves."""

    endpoint: str | None = None
    region: str | None = None
    access_key: str | None = None
    secret_key: str | None = field(default=None, repr=False)
    session_token: str | None = field(default=None, repr=False)

    @staticmethod
    def of(environ: Mapping[str, str], *, needs_keys: bool) -> AwsEnvironment:
        """Read the variables and, where keys or a region are still missing, the profile's files."""
        endpoint = environ.get("AWS_ENDPOINT_URL_S3") or environ.get("AWS_ENDPOINT_URL") or None
        if environ.get("AWS_IGNORE_CONFIGURED_ENDPOINT_URLS", "").lower() == "true":
            endpoint = None
        region = environ.get("AWS_REGION") or environ.get("AWS_DEFAULT_REGION") or None
        profile = _Profile.of(environ)
        found = AwsEnvironment(endpoint, region or profile.values.get("region"))
        if not needs_keys or environ.get("AWS_ACCESS_KEY_ID"):
            return found
        key, secret = profile.values.get("aws_access_key_id"), profile.values.get("aws_secret_access_key")
        if key and secret:
            token = profile.values.get("aws_session_token")
            return AwsEnvironment(found.endpoint, found.region, key, secret, token)
        if environ.get("AWS_PROFILE"):
            raise InvalidError(
                f"AWS_PROFILE is {profile.name!r}, but {profile.credentials} has no keys for it: give AWS_ACCESS_KEY_ID and "
                "AWS_SECRET_ACCESS_KEY, which `aws configure export-credentials --format env` prints for any profile"
            )
        return found


@dataclass(frozen=True, slots=True)
class _Profile:
    name: str
    credentials: Path
    values: Mapping[str, str] = field(repr=False)

    @staticmethod
    def of(environ: Mapping[str, str]) -> _Profile:
        name = environ.get("AWS_PROFILE") or "default"
        folder = Path(environ.get("HOME") or Path.home()) / ".aws"
        credentials = Path(environ.get("AWS_SHARED_CREDENTIALS_FILE") or folder / "credentials").expanduser()
        config = Path(environ.get("AWS_CONFIG_FILE") or folder / "config").expanduser()
        section = name if name == "default" else f"profile {name}"
        return _Profile(name, credentials, {**_section(config, section), **_section(credentials, name)})


def _section(path: Path, name: str) -> dict[str, str]:
    parser = configparser.RawConfigParser()
    try:
        parser.read(path, encoding="utf-8")
    except (OSError, UnicodeDecodeError, configparser.Error) as error:
        raise InvalidError(f"{path} cannot be read as a file of AWS profiles ({type(error).__name__})") from error
    return dict(parser.items(name)) if parser.has_section(name) else {}
