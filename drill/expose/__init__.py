"""What the drill's engines, GPUs and gateway show to who reads them: text as the real ones write it, and samples."""
