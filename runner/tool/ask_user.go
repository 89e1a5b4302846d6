package tool

import (
	"context"
	"encoding/json"
	"strings"
)

// AskUser is the name of the tool that asks a person. The runner does not call its Run.
// Instead, it suspends the turn until the person answers, and the answer becomes the result.
const AskUser = "ask_user"

// The limits of ask_user.
const (
	MaxQuestions = 5    // calls of one step that may wait for an answer at the same time
	maxQuestion  = 2000 // characters
	maxChoices   = 10
	maxChoice    = 200 // characters
)

type askUser struct{}

// Spec describes ask_user.
func (askUser) Spec() Spec {
	return Spec{
		Name: AskUser,
		Description: `Ask the user, and wait for the answer, which may take days. Only for what you cannot go on
without and the user alone knows or decides. Up to 5 calls in one step.`,
		InputSchema: objectSchema(`
    "question": {"type": "string", "minLength": 1, "description": "One question, clear by itself; at most 2000 characters"},
    "choices": {
      "type": "array",
      "maxItems": 10,
      "items": {"type": "string", "minLength": 1, "maxLength": 200},
      "description": "Likely answers; others stay possible"
    }`,
			"question"),
		Repeatable: true,
	}
}

// Run returns an *Error with the reason why the question is not asked. The runner calls Run
// only in that case.
func (askUser) Run(_ context.Context, _ Host, input json.RawMessage) (json.RawMessage, error) {
	if err := CheckQuestion(input); err != nil {
		return nil, err
	}
	return nil, Errorf("this question was not asked: at most %d may wait at once. Ask it after these are answered",
		MaxQuestions)
}

// CheckQuestion returns an *Error if the arguments of ask_user contain no valid question.
func CheckQuestion(input json.RawMessage) error {
	a := parse(input)
	question := a.text("question", true, maxQuestion)
	// A missing or oversized question has already been reported.
	if a.has("question", false) && strings.TrimSpace(question) == "" && len(*a.problems) == 0 {
		a.wrong("question must not be blank")
	}
	for i, choice := range a.texts("choices", maxChoices, maxChoice) {
		if strings.TrimSpace(choice) == "" {
			a.wrong("choices[%d] must not be blank", i)
		}
	}
	return a.err()
}
