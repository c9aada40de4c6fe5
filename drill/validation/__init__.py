"""The engine's model beside real engines: the same arrivals through both."""
