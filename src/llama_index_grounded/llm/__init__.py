"""One call of an LLM: what differs by provider, the stream and its deadline, and how the reply is read."""
