package mail

import (
	"context"
	"strings"

	"journeyman/mail/message"
)

// Preview returns the text that the author of a mail has written, and the names of its attachments
// as the sender names them. It returns no text if the mail cannot be read: the caller has the
// source.
func (s *Server) Preview(ctx context.Context, raw []byte) (text string, attachments []string) {
	text, err := s.readText(ctx, raw, &attachments)
	if err != nil {
		return "", attachments
	}
	return strings.TrimSpace(text), attachments
}

func (s *Server) readText(ctx context.Context, raw []byte, attachments *[]string) (text string, err error) {
	defer recovering("preview a mail", &err)
	return s.readBody(ctx, message.ReadHeader(raw), raw, func(a message.Attachment) error {
		*attachments = append(*attachments, a.Name)
		return nil
	})
}
