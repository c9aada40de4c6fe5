"""KV events as vLLM, SGLang and others publish them: what the messages say, without any socket."""
