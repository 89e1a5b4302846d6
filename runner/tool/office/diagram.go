package office

import (
	"slices"
	"strconv"
	"strings"
)

// The limits of a diagram.
const (
	maxNodes     = 5000
	maxNodeDepth = 20
	maxNodeText  = 10_000 // bytes of a text
)

// A diagramReader reads the texts of a diagram (SmartArt), and which text belongs to which.
type diagramReader struct {
	order    []string // ids of the points
	texts    map[string]string
	children map[string][]diagramChild
	now      string // id of the current point
	inText   bool
	size     int
}

// A diagramChild is a point that belongs to another one.
type diagramChild struct {
	id    string
	place int
}

// diagram returns the texts of a diagram as a list.
func (d *document) diagram(name string) (string, error) {
	return d.once(name, func() (string, error) {
		v := &diagramReader{texts: map[string]string{}, children: map[string][]diagramChild{}}
		found, err := d.parse(name, v)
		if !found {
			return "", err
		}
		return v.outline(), err
	})
}

// outline returns the texts, each with those that belong to it below.
func (v *diagramReader) outline() string {
	lines := []string{"[diagram]"}
	seen := map[string]bool{}
	for _, id := range v.order {
		if len(v.children[id]) > 0 && v.texts[id] == "" {
			lines = v.list(lines, seen, id, 0)
		}
	}
	for _, id := range v.order {
		lines = v.list(lines, seen, id, 0) // points that belong to no other one
	}
	if len(lines) == 1 {
		return ""
	}
	return strings.Join(lines, "\n")
}

// list adds a point and those that belong to it, as a list.
func (v *diagramReader) list(lines []string, seen map[string]bool, id string, depth int) []string {
	if seen[id] || depth > maxNodeDepth {
		return lines
	}
	seen[id] = true
	if text := strings.Join(strings.Fields(v.texts[id]), " "); text != "" {
		lines = append(lines, strings.Repeat("  ", depth)+"- "+text)
		depth++
	}
	children := v.children[id]
	slices.SortStableFunc(children, func(a, b diagramChild) int { return a.place - b.place })
	for _, c := range children {
		lines = v.list(lines, seen, c.id, depth)
	}
	return lines
}

func (v *diagramReader) start(name string, attr attributes) error {
	switch name {
	case "pt":
		v.now = ""
		if len(v.order) < maxNodes {
			v.now = attr.get("modelId")
			v.order = append(v.order, v.now)
		}
	case "cxn":
		if kind := attr.get("type"); kind == "" || kind == "parOf" {
			place, _ := strconv.Atoi(attr.get("srcOrd"))
			from := attr.get("srcId")
			v.children[from] = append(v.children[from], diagramChild{attr.get("destId"), place})
		}
	case "t":
		// The element for the text of a point has the same name as the pieces of the text in it.
		v.inText = true
	case "br":
		v.texts[v.now] = appendUpTo(v.texts[v.now], " ", maxNodeText)
	}
	return nil
}

func (v *diagramReader) end(name string) error {
	switch name {
	case "t":
		v.inText = false
	case "p":
		v.texts[v.now] = appendUpTo(v.texts[v.now], " ", maxNodeText)
	}
	return nil
}

func (v *diagramReader) text(text string) error {
	if v.inText && v.now != "" && v.size <= maxText {
		v.size += len(text)
		v.texts[v.now] = appendUpTo(v.texts[v.now], text, maxNodeText)
	}
	return nil
}
