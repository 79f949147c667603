"""The rules of a schema, one module each: run by ``write.validate``, and on Spark by bucket."""
