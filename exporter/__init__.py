"""The sidecar: engine, GPU and gateway numbers in; thrashold's signals out, once a second."""
