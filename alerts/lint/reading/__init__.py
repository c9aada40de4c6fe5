"""Files into queries: YAML and JSON with the place of each value, rule files, Grafana boards."""
