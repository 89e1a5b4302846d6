package task

import (
	"strings"
	"testing"

	"github.com/matryer/is"

	"journeyman/handlers/dashboard/text"
	"journeyman/store"
)

// TestFailuresAreExplained shows the reasons why turns failed or wait.
func TestFailuresAreExplained(t *testing.T) {
	t.Parallel()
	is := is.New(t)
	german, english := text.Languages()[1], text.English()
	failed := store.Turn{Status: store.Failed, Failure: &store.Failure{Code: "loop", Message: "five times",
		Retryable: true}}
	is.Equal(problemText(german, failed, false),
		"Das Modell hat denselben Werkzeugaufruf wiederholt: five times. Ein neuer Versuch hilft vielleicht.")
	is.Equal(problemText(english, failed, false), "Five times. Trying again may help.")
	failed.Failure = &store.Failure{Code: "boom", Message: "the script says so"}
	is.Equal(problemText(german, failed, false), "The script says so.") // the code is unknown
	failed.Failure = &store.Failure{}
	is.Equal(problemText(german, failed, false), "Die Runde ist fehlgeschlagen.")
	short := store.Turn{Status: store.Completed, Budget: "low", IncompleteReason: store.ReasonBudget,
		IncompleteLimit: "steps"}
	const end = " A follow-up with a larger budget continues from here."
	is.Equal(problemText(english, short, false),
		`The answer is not complete: the budget "low" has used up its model calls.`+end)
	is.Equal(problemText(english, short, true),
		`The answer is not complete: the budget "low" has used up its model calls. Other workers used it, too.`+end)
	short.IncompleteLimit = "time" // each worker's own
	is.True(!strings.Contains(problemText(english, short, true), "Other workers"))
	outage := "connection: no connection to the model server: no such host"
	is.Equal(outageText(german, outage),
		"Der Modellserver ist nicht erreichbar: no connection to the model server: no such host")
	is.Equal(outageText(english, outage), outage)
	is.Equal(outageText(german, "asleep: z: z"), "asleep: z: z")
	is.Equal(outageText(german, "overloaded"), "overloaded")
}
