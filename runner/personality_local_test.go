package runner_test

// localServers returns llama.cpp, vLLM and LM Studio.
func localServers() []personality {
	return []personality{{name: "plain-local", id: func(n int) string { return string(rune('a'+n%26)) + "local" + string(rune('a'+n/26)) }}}
}
