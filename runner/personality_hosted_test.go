package runner_test

// hostedServers returns Groq, Mistral, Gemini and OpenRouter.
func hostedServers() []personality {
	return []personality{{name: "plain-hosted", id: func(n int) string { return string(rune('a'+n%26)) + "hosted" + string(rune('a'+n/26)) }}}
}
