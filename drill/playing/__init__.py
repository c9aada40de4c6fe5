"""A scene is played: the fleet second by second, a sidecar's cycle over it, and what is kept of both."""
