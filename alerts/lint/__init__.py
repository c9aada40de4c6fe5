"""The linter: faults of rule files and Grafana boards that look at LLM serving, found before they hide an incident."""
