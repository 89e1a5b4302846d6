package mail

import "strings"

// Preview gives what a person would read in a mail: the text its author has written,
// and the names of its attachments, which are the sender's words.
func Preview(raw []byte) (text string, attachments []string) {
	text, err := ReadBody(ReadHeader(raw), raw, func(a Attachment) error {
		attachments = append(attachments, a.Name)
		return nil
	})
	if err != nil {
		return "", attachments // what it was made of can't be read; the source is there
	}
	return strings.TrimSpace(text), attachments
}
