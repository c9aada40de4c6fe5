"""A scene on real sockets in real time: what its engines, gateway and GPUs would answer to whoever reads them."""
