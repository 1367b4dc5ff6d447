"""The store on S3 and servers like it."""
