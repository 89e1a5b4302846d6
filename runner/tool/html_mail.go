package tool

import (
	"encoding/json"
	"slices"
	"strings"

	"golang.org/x/net/html"
	"golang.org/x/net/html/atom"
)

// readMailPages is the filter for Documents.MailHTML. Input and output are JSON lists of texts.
func readMailPages(in []byte) ([]byte, error) {
	var pages []string
	if err := json.Unmarshal(in, &pages); err != nil {
		return nil, err
	}
	for i, page := range pages {
		pages[i] = mailText(page)
	}
	return json.Marshal(pages)
}

// mailText returns the author's own text of an HTML mail, as Markdown.
func mailText(page string) string {
	doc, err := parseHTML(page)
	if err != nil {
		_, words := wordsOfSource(page)
		return words
	}
	hideText(doc)
	b := bounder{unread: isMailClutter, image: imageText, node: dropStrangeLink}
	if err := b.bound(doc); err != nil {
		return linesOf(doc)
	}
	return markdown(doc, "")
}

// isSignature reports whether a class or id is used by a mail program for signatures.
func isSignature(mark string) bool {
	switch mark {
	case "gmail_signature", "gmail_signature_prefix", "moz-signature", "signature", "x_signature", "mobile_signature",
		"ms-outlook-mobile-signature", "ms-outlook-mobile-body-separator-line", "applemailsignature",
		"protonmail_signature_block", "yahoo-signature", "ydp-signature":
		return true
	}
	return false
}

// isMailClutter reports whether an element is a signature or has no text for readers.
func isMailClutter(n *html.Node) bool {
	if isUnseen(n.DataAtom) {
		return true
	}
	for _, a := range n.Attr {
		if a.Key != "class" && a.Key != "id" && a.Key != "data-smartmail" || len(a.Val) > maxAttribute {
			continue
		}
		if slices.ContainsFunc(strings.Fields(strings.ToLower(a.Val)), isSignature) {
			return true
		}
	}
	return false
}

// dropStrangeLink replaces a link by its text if the link leads to neither a page nor a mail
// address. Such a link may run a script.
func dropStrangeLink(n *html.Node) {
	if n.DataAtom != atom.A {
		return
	}
	// Keep the text, because the author wrote it.
	for i, a := range n.Attr {
		if a.Key != "href" {
			continue
		}
		scheme, _, _ := strings.Cut(strings.ToLower(strings.TrimSpace(a.Val)), ":")
		if scheme != "http" && scheme != "https" && scheme != "mailto" && scheme != "tel" {
			n.DataAtom, n.Data = atom.Span, "span"
			n.Attr = append(n.Attr[:i], n.Attr[i+1:]...)
			return
		}
	}
}

// imageText returns the description of a picture, "" if it has none.
func imageText(n *html.Node) string {
	alt := strings.Join(strings.Fields(attribute(n, "alt")), " ")
	if alt == "" || len(alt) > maxAttribute {
		return ""
	}
	return "[image: " + alt + "]"
}
