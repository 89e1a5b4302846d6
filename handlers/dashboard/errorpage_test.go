package dashboard

import (
	"strings"
	"testing"

	"github.com/matryer/is"

	"journeyman/handlers"
	"journeyman/handlers/dashboard/text"
	"journeyman/store"
)

// TestErrorsAreExplained shows errors of each kind in German, and in English without a change.
func TestErrorsAreExplained(t *testing.T) {
	t.Parallel()
	for message, tt := range map[string]struct {
		err  *store.Error
		want string
	}{
		"own code":      {&store.Error{Kind: store.Busy, Code: "storage", Message: "it is full"}, "Der Server kann gerade nichts speichern: it is full"},
		"code of kind":  {&store.Error{Kind: store.Conflict, Code: "approval_denied", Message: "too late"}, "Das ist jetzt nicht möglich: too late"},
		"nothing more":  {&store.Error{Kind: store.PaymentRequired, Code: "credit_cap", Message: "no credits"}, "Die Credits dieses Monats sind verbraucht."},
		"without words": {&store.Error{Kind: store.TooLarge}, "Das ist zu groß"},
	} {
		t.Run(message, func(t *testing.T) {
			t.Parallel()
			is := is.New(t)
			is.Equal((&request{lang: text.Languages()[1]}).explained(tt.err), tt.want)
			is.Equal((&request{lang: text.English()}).explained(tt.err), tt.err.Message)
		})
	}
	for kind := store.Invalid; kind <= store.Stale; kind++ {
		p := handlers.ProblemOf(&store.Error{Kind: kind})
		if what, _ := codeText(text.English(), p.Code); what == "" && p.Code != "idempotency_mismatch" { // no page has a key
			t.Errorf("the code %q has no text", p.Code)
		}
	}
}

// TestFailuresAreExplained shows the reasons why turns failed or wait.
func TestFailuresAreExplained(t *testing.T) {
	t.Parallel()
	is := is.New(t)
	german, english := text.Languages()[1], text.English()
	failed := store.Turn{Status: store.Failed, Failure: &store.Failure{Code: "loop", Message: "five times", Retryable: true}}
	is.Equal(problemText(german, failed, false), "Das Modell hat denselben Werkzeugaufruf wiederholt: five times. Ein neuer Versuch hilft vielleicht.")
	is.Equal(problemText(english, failed, false), "Five times. Trying again may help.")
	failed.Failure = &store.Failure{Code: "boom", Message: "the script says so"}
	is.Equal(problemText(german, failed, false), "The script says so.") // the code is unknown
	failed.Failure = &store.Failure{}
	is.Equal(problemText(german, failed, false), "Die Runde ist fehlgeschlagen.")
	short := store.Turn{Status: store.Completed, Budget: "low", IncompleteReason: store.ReasonBudget, IncompleteLimit: "steps"}
	const end = " A follow-up with a larger budget continues from here."
	is.Equal(problemText(english, short, false), `The answer is not complete: the budget "low" has used up its model calls.`+end)
	is.Equal(problemText(english, short, true), `The answer is not complete: the budget "low" has used up its model calls. Other workers used it, too.`+end)
	short.IncompleteLimit = "time" // each worker's own
	is.True(!strings.Contains(problemText(english, short, true), "Other workers"))
	outage := "connection: no connection to the model server: no such host"
	is.Equal(outageText(german, outage), "Der Modellserver ist nicht erreichbar: no connection to the model server: no such host")
	is.Equal(outageText(english, outage), outage)
	is.Equal(outageText(german, "asleep: z: z"), "asleep: z: z")
	is.Equal(outageText(german, "overloaded"), "overloaded")
}
