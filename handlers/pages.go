package handlers

import (
	"net/http"
	"net/url"
	"strconv"

	"journeyman/runner/view"
	"journeyman/store/db"
)

// A page is one page of a list. NextCursor is null on the last one.
type page[T any] struct {
	Items      []T     `json:"items"`
	NextCursor *string `json:"nextCursor"`
}

// respondPage writes a page of a store's list as the response, or returns err.
func respondPage[T, V any](w http.ResponseWriter, list []T, next string, show func(T) V, err error) error {
	return respondOK(w, page[V]{Items: each(list, show), NextCursor: view.Optional(next)}, err)
}

// each returns show's result for each item. It never returns nil, which JSON shows as null.
func each[T, V any](list []T, show func(T) V) []V {
	views := make([]V, 0, len(list))
	for _, item := range list {
		views = append(views, show(item))
	}
	return views
}

// pageLimit reads how many items a page may have: 1 to 100, 50 by default.
func pageLimit(f *db.Fields, query url.Values) int {
	v := query.Get("limit")
	if v == "" {
		return 50
	}
	n, err := strconv.Atoi(v)
	f.Check(err == nil && 1 <= n && n <= 100, "limit", "must be a whole number from 1 to 100")
	return n
}
