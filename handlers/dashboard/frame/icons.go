package frame

import (
	"bytes"
	"fmt"
	"hash/fnv"
	"html/template"
	"strconv"
	"strings"
)

// The sprite icons.svg holds one symbol for each icon. Pages refer to a symbol by its address, so
// that a browser loads the drawings once for all pages.

// iconNames returns the names of the symbols of a sprite.
func iconNames(sprite []byte) map[string]bool {
	names := map[string]bool{}
	for _, part := range bytes.Split(sprite, []byte(`<symbol id="i-`))[1:] {
		name, _, _ := bytes.Cut(part, []byte(`"`))
		names[string(name)] = true
	}
	return names
}

// Icon returns the drawing of that name. It returns an error if the sprite does not hold it.
func (fr *Frame) Icon(name string) (template.HTML, error) {
	if !fr.icons[name] {
		return "", fmt.Errorf("there is no icon %q", name)
	}
	address, err := fr.assets.address("icons.svg")
	return template.HTML(`<svg class="i" aria-hidden="true"><use href="` + address + //nolint:gosec // constant names
		`#i-` + name + `"/></svg>`), err
}

// Glyph returns the sign of a worker: an icon that its title suggests, in a colour of its own. The
// further classes set the size.
func (fr *Frame) Glyph(id, title string, classes ...string) (template.HTML, error) {
	drawing, err := fr.Icon(glyphIcon(strings.ToLower(title)))
	sum := fnv.New32a()
	_, _ = sum.Write([]byte(id)) // a hash never fails
	class := strings.Join(append([]string{"glyph", "c" + strconv.Itoa(int(sum.Sum32()%5))}, classes...), " ")
	tag := template.HTML(`<span class="` + class + `" aria-hidden="true">`) //nolint:gosec // constant text
	return tag + drawing + `</span>`, err
}

// glyphIcon returns the icon for a worker with that title, in lower case.
func glyphIcon(title string) string {
	for _, choice := range []struct{ icon, words string }{
		{"receipt", "invoice receipt bill rechnung beleg"}, {"mail", "mail inbox letter newsletter post"},
		{"usage", "report figure number quarter chart analy statistic data bericht zahlen"},
		{"globe", "research web scout market news recherche"}, {"term", "code review repository test build deploy"},
		{"tasks", "meeting plan todo action schedule protokoll"},
		{"doc", "document summar note text writ contract vertrag"},
		{"tag", "buy price offer sale shop einkauf angebot"}, {"table", "table csv sheet clean excel tabelle"},
	} {
		for word := range strings.FieldsSeq(choice.words) {
			if strings.Contains(title, word) {
				return choice.icon
			}
		}
	}
	return "workers"
}
