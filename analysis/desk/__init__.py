"""The desk: hears Alertmanager, opens an incident, and has its report ready when somebody comes to look."""
