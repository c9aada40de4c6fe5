"""Grafana boards, generated."""
