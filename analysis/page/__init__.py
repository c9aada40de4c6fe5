"""Pages in one file that need nothing else: charts, tables and words, to open, to send and to print."""
