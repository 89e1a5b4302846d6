package tool

import "journeyman/runner/tool/vobject"

// calendarText returns the entries of a calendar as text.
func calendarText(document []byte, s selection, expired func() bool) ([]byte, error) {
	return vobject.Calendar(document, s.Encoding, expired)
}

// contactsText returns the contacts of a file as text.
func contactsText(document []byte, s selection, expired func() bool) ([]byte, error) {
	return vobject.Contacts(document, s.Encoding, expired)
}
