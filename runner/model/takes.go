package model

// Takes says which files a model takes, and what the files cost.
type Takes struct {
	Model    string // name of the model, for notes
	Pictures bool   // the model sees
	PDFs     bool   // the provider reads PDF files

	badPictures bool // the server has refused a picture of this request
	badPDFs     bool // the server has refused a PDF file of this request

	pictureTokens func(width, height int) int64 // that the provider counts for a picture
}

// TakesOf returns which files a model takes, as far as its provider has stated or shown it. It makes no request.
func TakesOf(m Model) Takes {
	if t, ok := m.(interface{ taken() Takes }); ok {
		return t.taken()
	}
	return Takes{Model: m.Name(), Pictures: true, PDFs: true, pictureTokens: openAIPictureTokens}
}

// taken returns what the recorded model takes.
func (r *recorder) taken() Takes { return TakesOf(r.model) }

// Tokens returns the estimated tokens of a file in a request: of its name, its text, its pages or its pixels,
// whatever is sent. textTokens returns the tokens of a text.
func (t Takes) Tokens(p Part, textTokens func(string) int64) int64 {
	at, why := t.form(p)
	switch {
	case why != "":
		return textTokens(note(p, why, "read_file reads it, if it holds text."))
	case at.kind == fileText:
		return textTokens(at.text) + textTokens(p.Path) + frame
	case at.kind == filePDF:
		return t.pdfTokens(p)
	}
	if at.picture.Width == 0 {
		return t.tokensOf(widest, widest)
	}
	return t.tokensOf(at.picture.Width, at.picture.Height)
}

const (
	frame  = 10   // tokens around the text of a file
	widest = 1500 // pixels a side of a picture whose size is unknown
)

func (t Takes) tokensOf(width, height int) int64 {
	if t.pictureTokens == nil {
		return openAIPictureTokens(width, height)
	}
	return t.pictureTokens(width, height)
}

// pdfTokens returns the tokens of a PDF file. Providers send models each page as text and as a picture. Anthropic
// states 1,500 to 3,000 tokens for the text of a page.
func (t Takes) pdfTokens(p Part) int64 {
	const perPage, bytesPerPage = 3000, 50_000
	pages := int64(0)
	if p.Pages != nil {
		pages = int64(p.Pages())
	}
	if pages == 0 { // unknown, as in encrypted files
		pages = min(1+p.Size/bytesPerPage, maxPDFPages)
	}
	return pages * perPage
}

// claudePictureTokens returns the tokens that Anthropic counts for a picture: one per 750 pixels. Newer models
// count up to 4784, older ones reduce the picture to about 1600.
func claudePictureTokens(width, height int) int64 { return min(int64(width)*int64(height)/750+1, 4784) }

// openAIPictureTokens returns the tokens that OpenAI counts for a picture. Its models count either tiles of 512
// pixels or patches of 32 pixels. This is the higher number of the two.
func openAIPictureTokens(width, height int) int64 {
	const mostPatches = 1536
	patches := min(cells(width, 32)*cells(height, 32), mostPatches)
	// The picture is reduced until its shorter side has 768 pixels, and then divided.
	if shorter := min(width, height); shorter > 768 {
		width, height = width*768/shorter, height*768/shorter
	}
	return max(patches, 85+170*cells(width, 512)*cells(height, 512))
}

// ollamaPictureTokens returns the tokens of a picture for models on an Ollama server: Qwen models count patches of 28
// pixels, and others a fixed number.
func ollamaPictureTokens(width, height int) int64 {
	const fixed = 576
	return max(fixed, cells(width, 28)*cells(height, 28))
}

// cells returns the number of cells that cover a side.
func cells(side, cell int) int64 { return int64((side + cell - 1) / cell) }

func (c *claude) takes(q claudeQuirks) Takes {
	return q.fileQuirks.takes(c.name, claudePictureTokens)
}

func (c *claude) taken() Takes { return c.takes(c.knownQuirks(&Request{})) }

func (o *openAI) takes(q quirks) Takes {
	t := q.fileQuirks.takes(o.name, openAIPictureTokens)
	t.Pictures, t.PDFs = t.Pictures && !q.shape.plain, t.PDFs && !q.shape.plain
	return t
}

func (o *openAI) taken() Takes { return o.takes(o.knownQuirks(nil)) }

func (o *responses) takes(q responsesQuirks) Takes {
	return q.fileQuirks.takes(o.name, openAIPictureTokens)
}

func (o *responses) taken() Takes { return o.takes(o.knownQuirks(&Request{})) }

// takes returns what a model takes. The API knows no PDF files.
func (o *ollama) takes(m ollamaModel) Takes {
	return Takes{Model: o.name, Pictures: m.vision, badPictures: m.quirks.badImages, pictureTokens: ollamaPictureTokens}
}

// taken does not ask the server: Describe and calls do.
func (o *ollama) taken() Takes {
	o.mu.Lock()
	m := ollamaModel{vision: true}
	if o.shown != nil {
		m = *o.shown
	}
	o.mu.Unlock()
	o.limit(&m)
	return o.takes(m)
}
