package handlers

import (
	"mime"
	"net/http"
	"strconv"
	"strings"

	"journeyman/handlers/serve"
)

// A mediaRange is one of the media types that an Accept header lists.
type mediaRange struct {
	mainType, subtype string // "*" for any
	quality           float64
}

// acceptHeader reads an Accept header (RFC 9110, section 12.5.1). Ranges that it
// cannot read are left out.
func acceptHeader(r *http.Request) []mediaRange {
	var list []mediaRange
	for _, field := range serve.ListHeader(r, "Accept") {
		name, parameters, _ := strings.Cut(field, ";")
		mainType, subtype, ok := strings.Cut(strings.ToLower(strings.TrimSpace(name)), "/")
		if !ok {
			continue
		}
		list = append(list, mediaRange{mainType, subtype, weight(parameters)})
	}
	return list
}

// weight returns the quality in the parameters of a media range: 1 if they have none that it can read.
func weight(parameters string) float64 {
	quality := 1.0
	for p := range strings.SplitSeq(parameters, ";") {
		name, value, _ := strings.Cut(p, "=")
		if !strings.EqualFold(strings.TrimSpace(name), "q") {
			continue
		}
		if q, err := strconv.ParseFloat(strings.TrimSpace(value), 64); err == nil && q >= 0 && q <= 1 {
			quality = q
		}
	}
	return quality
}

// quality returns how much a client wants a media type, 0 for not at all. The most exact range
// counts. exactness is 2 for the type itself, and 0 for */*.
func quality(list []mediaRange, mediaType string) (q float64, exactness int) {
	mainType, subtype, _ := strings.Cut(mediaType, "/")
	exactness = -1
	for _, m := range list {
		exact := -1
		switch {
		case m.mainType == mainType && m.subtype == subtype:
			exact = 2
		case m.mainType == mainType && m.subtype == "*":
			exact = 1
		case m.mainType == "*" && m.subtype == "*":
			exact = 0
		}
		if exact > exactness {
			q, exactness = m.quality, exact
		}
	}
	return q, exactness
}

// preferred returns the media type that a client prefers: that of the highest quality, then of the
// more exact range, then the first. It returns the first type if the client accepts none.
func preferred(r *http.Request, types ...string) string {
	list := acceptHeader(r)
	best, bestQuality, bestExactness := types[0], 0.0, -1
	for _, typ := range types {
		q, exactness := quality(list, typ)
		if q > bestQuality || q == bestQuality && q > 0 && exactness > bestExactness {
			best, bestQuality, bestExactness = typ, q, exactness
		}
	}
	return best
}

// WantsHTML reports whether a browser asks for a page: browsers name HTML in Accept, programs do
// not.
func WantsHTML(r *http.Request) bool {
	list := acceptHeader(r)
	for _, mediaType := range []string{"text/html", "application/xhtml+xml"} {
		if q, exactness := quality(list, mediaType); q > 0 && exactness == 2 {
			return preferred(r, mediaType, "application/json") == mediaType
		}
	}
	return false
}

// codeMediaType is the code of the error for a body of another type.
const codeMediaType = "unsupported_media_type"

// plainBody refuses a compressed body, and names the accepted encoding (RFC 9110, section 12.5.3).
func plainBody(w http.ResponseWriter, r *http.Request) error {
	for _, encoding := range serve.ListHeader(r, "Content-Encoding") {
		if encoding != "" && !strings.EqualFold(encoding, "identity") {
			w.Header().Set("Accept-Encoding", "identity")
			return &Problem{Status: http.StatusUnsupportedMediaType, Code: "unsupported_encoding",
				Message: "the body must not be compressed: send it without Content-Encoding"}
		}
	}
	return nil
}

func wantJSON(r *http.Request) error {
	value := r.Header.Get("Content-Type")
	if value == "" {
		return nil
	}
	mediaType, _, err := mime.ParseMediaType(value)
	if err == nil && (mediaType == "application/json" || strings.HasSuffix(mediaType, "+json")) {
		return nil
	}
	return &Problem{Status: http.StatusUnsupportedMediaType, Code: codeMediaType,
		Message: "the Content-Type must be application/json"}
}
