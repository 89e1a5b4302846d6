package model

import "errors"

// maxFailed is the maximum number of bytes that are kept of a tool call that the server could not read.
const maxFailed = 1000

// mistake returns the text for a model whose tool call the server could not read, "" for other errors. Such a server
// answers with an error in place of the call.
func (r *apiError) mistake(secrets []string) string {
	if !r.says(meansMistake) {
		return ""
	}
	text := "Your tool call was not made, because the server could not read it: " + tidyMessage(r.message, secrets)
	if r.failed != "" {
		text += "\nYou wrote:\n" + cutText(redact(r.failed, secrets), maxFailed)
	}
	return text + "\nMake the call again, with the name of an offered tool and with arguments that match its schema, " +
		"or answer without a tool."
}

// mistaken returns the response for a call that failed only by the model's mistake, and reports whether it did. The
// server counts no tokens then, so they are estimated.
func mistaken(name string, req *Request, resp Response, err error) (Response, bool) {
	var e *Error
	if !errors.As(err, &e) || e.mistake == "" {
		return resp, false
	}
	answer := Response{Model: name, Finish: FinishOther, Mistake: e.mistake, Usage: resp.Usage}
	if answer.Usage.InputTokens+answer.Usage.OutputTokens == 0 {
		answer.Usage = EstimateUsage(req, nil)
	}
	return answer, true
}

// orMistake returns the result of a call, or the response for the model's mistake in place of its error.
func orMistake(name string, req *Request, resp Response, err error) (Response, error) {
	if answer, ok := mistaken(name, req, resp, err); ok {
		return answer, nil
	}
	return resp, err
}
