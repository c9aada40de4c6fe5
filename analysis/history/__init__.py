"""History as frames, from whoever kept it: a recorder's file, a dump, Parquet, a Prometheus-compatible server."""
