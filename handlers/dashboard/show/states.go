package show

import (
	"fmt"

	"journeyman/handlers/dashboard/text"
)

// A State is the state of a task, a turn, a mail or a delivery on pages. It has an icon and a word,
// because a colour is not enough.
type State struct {
	Value string // as the API names it
	Class string // the colour
	Icon  string // "" for a spinner
	Key   text.Key
	Label string // in the language of the page
}

// StateOf returns the icon, the colour and the word of a state.
func StateOf(value string) State {
	s, known := map[string]State{
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
		s = State{Class: "off", Icon: "info", Key: text.Key(value)}
	}
	s.Value = value
	return s
}

// TranslatedState returns the template function state, which takes a state of any record.
func TranslatedState(l *text.Language) func(value any) State {
	return func(value any) State {
		s := StateOf(fmt.Sprint(value))
		s.Label = l.T(s.Key)
		return s
	}
}
