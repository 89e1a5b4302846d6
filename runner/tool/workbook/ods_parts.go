package workbook

import (
	"encoding/xml"
	"errors"
	"strconv"
	"strings"

	"journeyman/runner/tool/office/archive"
)

// odsName returns a name with the prefix that its namespace has in the specification, such as "table:table-cell".
func odsName(name xml.Name) string {
	_, space, found := strings.Cut(name.Space, ":opendocument:xmlns:")
	if !found {
		return name.Local
	}
	space, _, _ = strings.Cut(space, ":")
	if space == "drawing" {
		space = "draw"
	}
	return space + ":" + name.Local
}

// odsAttributes are the attributes of an element of OpenDocument.
type odsAttributes []xml.Attr

// get returns the value of an attribute such as "table:name", "" if there is none.
func (a odsAttributes) get(name string) string {
	for _, attr := range a {
		if strings.HasSuffix(name, ":"+attr.Name.Local) && odsName(attr.Name) == name {
			return attr.Value
		}
	}
	return ""
}

// count returns a positive number of an attribute, 1 if there is none. It is at most most.
func (a odsAttributes) count(name string, most int) int {
	n, err := strconv.Atoi(a.get(name))
	if err != nil {
		if errors.Is(err, strconv.ErrRange) {
			return most
		}
		return 1
	}
	return min(max(n, 1), most)
}

// odsElements collects an attribute of all elements of some name.
type odsElements struct {
	archive.IgnoreText
	wanted, attribute string
	found             []string
}

// Start collects an attribute.
func (v *odsElements) Start(name xml.Name, attr archive.Attributes) error {
	if name.Local == v.wanted && len(v.found) < archive.MaxEntries {
		v.found = append(v.found, odsAttributes(attr).get(v.attribute))
	}
	return nil
}

// addChoices adds cells with a list of choices to those above them, so that a column needs only one note.
func (v *odsReader) addChoices(a area, list string) {
	for i := range v.lists {
		l := &v.lists[i]
		if l.list == list && l.cells.first.column == a.first.column && l.cells.last.column == a.last.column &&
			l.cells.last.row == a.first.row-1 {
			l.cells.last.row = a.last.row
			return
		}
	}
	if len(v.lists) < maxOverview {
		v.lists = append(v.lists, odsChoices{a, list})
	}
}

// An odsChoices is a list of choices of some cells.
type odsChoices struct {
	cells area
	list  string
}
