package store

import "journeyman/store/postgres"

// Storable returns a text as a later read returns it. PostgreSQL stores neither NUL nor invalid UTF-8:
// both become U+FFFD. A database in the data folder stores every text as it is.
func (s *Store) Storable(text string) string {
	if !s.OnServer() {
		return text
	}
	return postgres.Clean(text)
}

// makeStorable makes texts storable where they enter the store. So the first answer to a client, which
// shows a record from memory, equals later reads.
func (s *Store) makeStorable(texts ...*string) {
	for _, text := range texts {
		*text = s.Storable(*text)
	}
}

// storableOutcome returns an outcome with texts as later reads return them.
func (s *Store) storableOutcome(out Outcome) Outcome {
	s.makeStorable(&out.OutputText, &out.Model)
	if out.StructuredOutput != nil {
		out.StructuredOutput = []byte(s.Storable(string(out.StructuredOutput)))
	}
	if out.Failure != nil {
		f := *out.Failure // the caller's stays unchanged
		s.makeStorable(&f.Code, &f.Message)
		out.Failure = &f
	}
	return out
}
