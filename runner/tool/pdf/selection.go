package pdf

import (
	"fmt"
	"strconv"
	"strings"
)

// selected returns the pages that a selection such as "1,4-6" names, in its order. A page is named by its number, or
// by its label if only one page has that label and the label is no number. "" stands for all pages.
func (d *document) selected(selection string) (pages []int, err error) {
	if selection == "" {
		selection = "1-" + strconv.Itoa(d.pages)
	}
	labels := &labels{document: d}
	for part := range strings.SplitSeq(selection, ",") {
		first, last, err := labels.bounds(strings.TrimSpace(part))
		if err != nil {
			return nil, err
		}
		for n := first; n <= last; n++ {
			if pages = append(pages, n); len(pages) > maxSelected {
				return nil, fmt.Errorf("pages selects more than %d pages", maxSelected)
			}
		}
	}
	return pages, nil
}

// maxSelected is the maximum number of pages of a selection. A document can claim more pages than it has.
const maxSelected = 100_000

// labels finds pages by their label.
type labels struct {
	document *document
	pages    map[string][]int // nil until the first search
}

// bounds returns the first and the last page of a part of a selection.
func (l *labels) bounds(part string) (first, last int, err error) {
	// A label may have a hyphen, such as "A-3".
	if n, ok := l.page(part); ok {
		return n, n, nil
	}
	for i := range len(part) {
		if part[i] != '-' {
			continue
		}
		first, ok := l.page(strings.TrimSpace(part[:i]))
		last, also := l.page(strings.TrimSpace(part[i+1:]))
		if ok && also && first <= last {
			return first, last, nil
		}
	}
	return 0, 0, fmt.Errorf(`pages %q names no pages of it: it has %d, and pages takes numbers such as "1,4-6", or labels`,
		part, l.document.pages)
}

// page returns the number of the page with a number or label.
func (l *labels) page(name string) (n int, ok bool) {
	if n, err := strconv.Atoi(name); err == nil {
		return n, n >= 1 && n <= l.document.pages
	}
	if name == "" {
		return 0, false
	}
	if l.pages == nil {
		l.pages = map[string][]int{}
		for n := 1; n <= min(l.document.pages, maxLabels); n++ {
			label := l.document.label(n)
			l.pages[label] = append(l.pages[label], n)
		}
	}
	if found := l.pages[name]; len(found) == 1 {
		return found[0], true
	}
	return 0, false
}

// maxLabels is the maximum number of pages whose labels are searched.
const maxLabels = 10_000
