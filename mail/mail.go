// Package mail is the second front door: it takes mail for workers in, over SMTP or
// from the API, makes tasks of it, and sends the answers back into the thread. It
// reads what strangers write, decides whose mail starts work, and composes and
// relays replies.
//
// It imports store and runner. It never runs a turn and holds no SQL: it commits a
// row and wakes the runner; replies are rows that the end of a turn has written.
// Nothing a mail says is trusted: names are labels, addresses are claims until they
// are verified, and everything that can grow has a limit.
package mail
