package frame

import (
	"testing"

	"github.com/matryer/is"

	"journeyman/handlers"
	"journeyman/handlers/dashboard/text"
	"journeyman/store/db"
)

// TestErrorsAreExplained shows errors of each kind in German, and in English without a change.
func TestErrorsAreExplained(t *testing.T) {
	t.Parallel()
	for message, tt := range map[string]struct {
		err  *db.Error
		want string
	}{
		"own code": {&db.Error{Kind: db.Busy, Code: "storage", Message: "it is full"},
			"Der Server kann gerade nichts speichern: it is full"},
		"code of kind": {&db.Error{Kind: db.Conflict, Code: "approval_denied", Message: "too late"},
			"Das ist jetzt nicht möglich: too late"},
		"nothing more": {&db.Error{Kind: db.PaymentRequired, Code: "credit_cap", Message: "no credits"},
			"Die Credits dieses Monats sind verbraucht."},
		"without words": {&db.Error{Kind: db.TooLarge}, "Das ist zu groß"},
	} {
		t.Run(message, func(t *testing.T) {
			t.Parallel()
			is := is.New(t)
			is.Equal((&Request{Lang: text.Languages()[1]}).Explained(tt.err), tt.want)
			is.Equal((&Request{Lang: text.English()}).Explained(tt.err), tt.err.Message)
		})
	}
	for kind := db.Invalid; kind <= db.Stale; kind++ {
		p := handlers.ProblemOf(&db.Error{Kind: kind})
		if what, _ := codeText(text.English(), p.Code); what == "" && p.Code != "idempotency_mismatch" { // no page has a key
			t.Errorf("the code %q has no text", p.Code)
		}
	}
}
