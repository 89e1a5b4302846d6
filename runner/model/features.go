package model

// A feature is an optional part of a request, and whether a refusal is about it.
type feature[Q any] struct {
	refused bool
	leave   func(*Q) // leaves it out of the next request
	keeps   bool     // the model remembers it; other refusals are about one conversation
}

// without returns the quirks q without the first of the features that was refused, and whether they differ from q.
// Equal quirks would make the same request, which would be refused again. known is what the model remembers.
func without[Q comparable](q Q, known *Q, features []feature[Q]) (Q, bool) {
	was := q
	for _, f := range features {
		if f.refused {
			f.leave(&q)
			if f.keeps {
				f.leave(known)
			}
			break
		}
	}
	return q, q != was
}

// withoutFields returns the quirks q without the fields that a server does not know, and whether they differ from q.
// fields says what leaves out each field. The model remembers them: such a server never knows them.
func withoutFields[Q comparable](q Q, known *Q, names []string, fields map[string]func(*Q)) (Q, bool) {
	was := q
	for _, name := range names {
		if leave := fields[name]; leave != nil {
			leave(&q)
			leave(known)
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
// not remembered: the runner gets the window. known is the limit of the model that is remembered.
func (s *outputRoom) adapt(r *apiError, asked int, known *int) bool {
	was, asked := *s, s.maxTokens(asked)
	if most := int(r.mostOutput()); most >= leastRoom {
		s.most, *known = most, most
	}
	if room := r.roomBelow(asked); room > 0 {
		s.room, s.window = room, r.mostTokens()
	}
	return *s != was
}

// aboutImages reports whether a refusal is about pictures.
func (r *apiError) aboutImages() bool { return r.mentions("image", "vision", "multimodal", "mmproj") }
