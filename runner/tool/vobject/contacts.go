package vobject

import (
	"errors"
	"strings"

	"journeyman/runner/tool/charset"
)

// contactFields are the properties of a contact in the order of its text.
var contactFields = []struct{ name, label string }{
	{"NICKNAME", "Nickname"}, {"ORG", "Organization"}, {"TITLE", "Title"}, {"ROLE", "Role"}, {"EMAIL", "Email"},
	{"TEL", "Phone"}, {"ADR", "Address"}, {"URL", "Web"}, {"IMPP", "Messaging"}, {"BDAY", "Birthday"},
	{"ANNIVERSARY", "Anniversary"}, {"CATEGORIES", "Categories"}, {"MEMBER", "Member"}, {"RELATED", "Related"},
	{"LANG", "Language"}, {"TZ", "Time zone"}, {"GEO", "Position"}, {"NOTE", "Note"},
}

// Contacts returns the contacts of a vCard file as text. encoding is the name of its encoding, "" to guess.
func Contacts(data []byte, encoding string, expired func() bool) ([]byte, error) {
	root := parse(charset.Text(data, encoding), expired)
	var out page
	found := false
	for _, card := range root.parts {
		if card.name != "VCARD" || out.full() {
			continue
		}
		found = true
		out.contact(card)
	}
	switch {
	case !found:
		return nil, errors.New("it has no contacts")
	case out.full() || expired():
		out.WriteString("[the rest is not read]\n")
	}
	return []byte(strings.ToValidUTF8(out.String(), "\ufffd")), nil
}

// contact adds one contact.
func (p *page) contact(card *object) {
	name := card.get("FN").text()
	if strings.TrimSpace(name) == "" {
		name = fullName(card.get("N").fields())
	}
	if name == "" {
		name = "(no name)"
	}
	p.WriteString("## " + strings.Join(strings.Fields(name), " ") + "\n")
	if sorted := fullName(card.get("N").fields()); sorted != "" && sorted != name {
		p.field("Name", sorted)
	}
	for _, f := range contactFields {
		for _, property := range card.all(f.name) {
			p.field(f.label+kindsOf(property), contactValue(property))
		}
	}
	for _, property := range card.properties {
		if label, ok := strings.CutPrefix(property.name, "X-ABLABEL"); ok && label == "" {
			continue
		}
		if strings.HasPrefix(property.name, "X-") && len(property.value) <= 200 {
			p.field(property.name, property.text())
		}
		if property.name == "PHOTO" || property.name == "LOGO" {
			p.WriteString("[" + strings.ToLower(property.name) + " of the contact, not shown]\n")
		}
	}
	p.WriteString("\n")
}

// fullName returns the parts of a name in the order in which people write them.
func fullName(n []string) string {
	for len(n) < 5 {
		n = append(n, "")
	}
	family, given, middle, before, after := n[0], n[1], n[2], n[3], n[4]
	return strings.Join(strings.Fields(strings.Join([]string{before, given, middle, family, after}, " ")), " ")
}

// kindsOf returns the types of a property in parentheses, such as " (work, cell)".
func kindsOf(p property) string {
	var kinds []string
	for kind := range strings.SplitSeq(p.parameters["TYPE"], ",") {
		switch kind = strings.ToLower(strings.TrimSpace(kind)); kind {
		case "", "internet", "voice", "pref", "uri", "text":
		default:
			kinds = append(kinds, kind)
		}
	}
	if len(kinds) == 0 || len(kinds) > 10 {
		return ""
	}
	return " (" + strings.Join(kinds, ", ") + ")"
}

// contactValue returns the value of a property for a person.
func contactValue(p property) string {
	switch p.name {
	case "ADR", "ORG":
		var parts []string
		for _, part := range p.fields() {
			if part != "" {
				parts = append(parts, strings.ReplaceAll(part, "\n", ", "))
			}
		}
		return strings.Join(parts, ", ")
	case "TEL", "IMPP", "MEMBER", "RELATED":
		return strings.TrimPrefix(p.text(), "tel:")
	case "BDAY", "ANNIVERSARY":
		return dateOf(p.text())
	}
	return p.text()
}

// dateOf writes dates without dashes, such as 19800131 and --0131, with them.
func dateOf(value string) string {
	digits := strings.TrimPrefix(value, "--")
	if strings.Trim(digits[:min(len(digits), 8)], "0123456789") != "" {
		return value
	}
	switch {
	case len(value) == 8 && digits == value:
		return value[:4] + "-" + value[4:6] + "-" + value[6:]
	case len(digits) == 4 && digits != value:
		return digits[:2] + "-" + digits[2:] + " (no year)"
	}
	return value
}
