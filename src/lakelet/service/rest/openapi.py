"""The OpenAPI document of the HTTP edge."""

OPENAPI_JSON = b"{}"
