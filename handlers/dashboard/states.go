package dashboard

import (
	"fmt"

	"journeyman/handlers/dashboard/text"
)

// A state is the state of a task, a turn, a mail or a delivery on pages. It has an icon and a word,
// because a colour is not enough.
type state struct {
	Value string // as the API names it
	Class string // the colour
	Icon  string // "" for a spinner
	Key   text.Key
	Label string // in the language of the page
}

// stateOf returns the icon, the colour and the word of a state.
func stateOf(value string) state {
	s, known := map[string]state{
		"pending":   {Class: "queue", Icon: "clock", Key: "Queued"},
		"running":   {Class: "run", Key: "Running"},
		"waiting":   {Class: "wait", Icon: "shield", Key: "Waiting for you"},
		"completed": {Class: "good", Icon: "check", Key: "Done"},
		"error":     {Class: "bad", Icon: "warn", Key: "Failed"},
		"aborted":   {Class: "off", Icon: "x", Key: "Cancelled"},

		"accepted": {Class: "good", Icon: "check", Key: "Accepted"},
		"ignored":  {Class: "off", Icon: "x", Key: "Ignored"},
		"held":     {Class: "wait", Icon: "shield", Key: "Held"},
		"queued":   {Class: "queue", Icon: "clock", Key: "Queued"},
		"kept":     {Class: "queue", Icon: "archive", Key: "Kept"},
		"sent":     {Class: "good", Icon: "check", Key: "Sent"},
		"failed":   {Class: "bad", Icon: "warn", Key: "Failed"},
		"bounced":  {Class: "bad", Icon: "warn", Key: "Bounced"},
		"success":  {Class: "good", Icon: "check", Key: "Delivered"},
	}[value]
	if !known {
		s = state{Class: "off", Icon: "info", Key: text.Key(value)}
	}
	s.Value = value
	return s
}

// translatedState returns the template function state, which takes a state of any record.
func translatedState(l *text.Language) func(value any) state {
	return func(value any) state {
		s := stateOf(fmt.Sprint(value))
		s.Label = l.T(s.Key)
		return s
	}
}
