package model

// A feature is an optional part of a request, and whether a refusal is about it.
type feature[Q any] struct {
	refused bool
	omit    func(*Q) // sets the quirk with which the next request omits the feature
	lasting bool     // the model remembers the quirk; other refusals are about one conversation
}

// without returns the quirks q without the first of the features that was refused and that q does not omit yet, and
// whether there is one. remembered are the quirks of later calls.
func without[Q comparable](q Q, remembered *Q, features []feature[Q]) (Q, bool) {
	for _, f := range features {
		next := q
		if f.refused {
			f.omit(&next)
		}
		if next == q {
			continue // an equal request would be refused again, so the refusal is about another feature
		}
		if f.lasting {
			f.omit(remembered)
		}
		return next, true
	}
	return q, false
}

// withoutFields returns the quirks q without the fields that a server does not know, and whether they differ from q.
// fields says how to omit each field. remembered are the quirks of later calls: such a server never knows the fields.
func withoutFields[Q comparable](q Q, remembered *Q, names []string, fields map[string]func(*Q)) (Q, bool) {
	was := q
	for _, name := range names {
		if omit := fields[name]; omit != nil {
			omit(&q)
			omit(remembered)
		}
	}
	return q, q != was
}

// An outputRoom is what refusals have said about the tokens that an answer may have.
type outputRoom struct {
	most   int   // output limit of the model, 0 if unknown
	room   int   // output limit for this request, 0 for none
	window int64 // context window that a refusal of this request named, 0 for none
}

// maxTokens returns the output limit of a request, 0 for none.
func (s outputRoom) maxTokens(asked int) int {
	for _, most := range []int{s.most, s.room} {
		if most > 0 && (asked == 0 || most < asked) {
			asked = most
		}
	}
	return asked
}

// adapt lessens the limits if a refusal names what fits, and reports whether it did. The room for one conversation is
// not remembered: the runner gets the window. remembered is the limit of the model for later calls.
func (s *outputRoom) adapt(r *apiError, asked int, remembered *int) bool {
	was, asked := *s, s.maxTokens(asked)
	if most := int(r.mostOutput()); most >= leastRoom {
		s.most, *remembered = most, most
	}
	if room := r.roomBelow(asked); room > 0 {
		s.room, s.window = room, r.mostTokens()
	}
	return *s != was
}
