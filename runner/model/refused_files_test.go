package model

import (
	"strings"
	"testing"

	"github.com/matryer/is"
)

// withFiles returns a request with a picture and a PDF file.
func withFiles() Request {
	open := func() ([]byte, error) { return []byte("abc"), nil }
	return Request{Messages: []Message{{Role: RoleUser, Parts: []Part{{Type: PartText, Text: "look"},
		{Type: PartFile, Path: "a.png", MediaType: "image/png", Size: 3, Open: open},
		{Type: PartFile, Path: "b.pdf", MediaType: "application/pdf", Size: 3, Open: open}}}}}
}

// TestRefusedFiles checks on each wire what is left out after a refusal: pictures or PDF files, of one request if a file
// is bad, and of all later ones if the model takes none.
func TestRefusedFiles(t *testing.T) {
	t.Parallel()
	for message, tt := range map[string]struct {
		kind    string // "" for a refusal of something else
		lasting bool
	}{
		"Your input image may contain content that is not allowed by our safety system.":                  {"image", false},
		"You uploaded an unsupported image. Please make sure your image is valid.":                        {"image", false},
		"You uploaded an unsupported image. Please make sure your image has of one the following formats": {"image", false},
		"invalid image data":        {"image", false},
		"part 2 is not an image":    {"image", false},
		"no image input found":      {"image", false},
		"Could not process image":   {"image", false},
		"Invalid base64 image_url.": {"image", false},
		"The image data you provided does not represent a valid image.":                                                         {"image", false},
		"messages.0.content.1.image.source.base64.data: Image does not match the provided media type image/png":                 {"image", false},
		"messages.0.content.1.image.source.base64: image exceeds 5 MB maximum: 6000000 bytes > 5242880 bytes, a size too large": {"image", false},
		"Unsupported image type application/octet-stream, only support image/jpeg and image/png":                                {"image", false},
		"unsupported image format: image/bmp":                                                                                   {"image", false},
		"this model does not support the image format webp":                                                                     {"image", false},
		"At most 1 image(s) may be provided in one prompt.":                                                                     {"image", false},
		"The image length and width do not meet the model restrictions. The dimension must be larger than 10":                   {"image", false},
		"Failed to load image or audio file":                                                                                    {"image", false},
		"This image is not supported":                                                                                           {"image", false},
		"this model does not support image input (ref: b8bd630e)":                                                               {"image", true},
		"Invalid content type. image_url is only supported by certain models.":                                                  {"image", true},
		"Image input modality is not enabled for models/gemma-3-27b-it":                                                         {"image", true},
		"This model doesn't support the image field for user messages. Remove image and try again.":                             {"image", true},
		"No endpoints found that support image input":                                                                           {"image", true},
		"messages[1]: unknown variant `image_url`, expected `text`":                                                             {"image", true},
		"At most 0 image(s) may be provided in one prompt.":                                                                     {"image", true},
		"m is not a multimodal model":                                                                                           {"image", true},
		"Image inputs are not supported by this model.":                                                                         {"image", true},
		"image input is not supported - hint: you may need to provide the mmproj":                                               {"image", true},
		"Model does not support images. Please use a model that does.":                                                          {"image", true},
		"this model is missing data required for image input":                                                                   {"image", true},
		"the model does not have the 'vision' capability":                                                                       {"image", true},
		"image content blocks are not supported by this model":                                                                  {"image", true},
		"messages.content.type 参数非法，取值范围 ['text']; content type":                                                                {"image", true},
		"PDF is password protected":                                                                                             {"pdf", false},
		"The PDF specified was not valid.":                                                                                      {"pdf", false},
		"messages.0.content.2.pdf.source.base64.data: The document has too many pages":                                          {"pdf", false},
		"Could not process the document":                                                                                        {"pdf", false},
		"Unknown part type: file":                                                                                               {"pdf", true},
		"This model does not support file input":                                                                                {"pdf", true},
		"PDF input is not supported by this model":                                                                              {"pdf", true},
		"Invalid value: 'input_file'. Supported values are: 'input_text' and 'input_audio'.":                                    {"pdf", true},
		"revision 3 of the engine is not supported":                                                                             {"", false},
		"cannot provision the accelerator":                                                                                      {"", false},
		"this profile is not supported":                                                                                         {"", false},
	} {
		for format, w := range wires() {
			if format == "ollama" && tt.kind == "pdf" {
				continue // its API has no PDF files
			}
			t.Run(format+": "+message, func(t *testing.T) {
				t.Parallel()
				is := is.New(t)
				refusal := refuses(400, message, "")
				if format == "ollama" {
					refusal = answers(400, "application/json", `{"error":`+string(rawJSON(message))+`}`)
				}
				p := newOllama(t, show(40960, "", allAbilities...), refusal, answers(200, w.kind, w.hello+w.end))
				m := w.at(t, p.URL, quick())
				if tt.kind == "" {
					failure(t, m, withFiles())
					is.Equal(p.count(), 1)
					return
				}
				has := func(n int) bool {
					raw := p.got(t, n).raw
					if tt.kind == "pdf" {
						return strings.Contains(raw, "application/pdf;base64") || strings.Contains(raw, `"application/pdf"`)
					}
					return strings.Contains(raw, "image/png;base64") || strings.Contains(raw, `"image/png"`) || strings.Contains(raw, `"images":[`)
				}
				for range 2 {
					answered(t, m, withFiles())
				}
				is.Equal(p.count(), 3)
				is.True(has(0))
				is.True(!has(1))
				is.Equal(has(2), !tt.lasting) // another conversation
				says := map[string]string{"image": "takes no pictures", "pdf": "takes no PDF files"}[tt.kind]
				is.Equal(strings.Contains(p.got(t, 1).raw, says), tt.lasting)
				is.Equal(strings.Contains(p.got(t, 1).raw, "the model server refuses a"), !tt.lasting)
			})
		}
	}
}

// TestRefusalWithoutFiles checks that a request without pictures learns nothing about them.
func TestRefusalWithoutFiles(t *testing.T) {
	t.Parallel()
	is := is.New(t)
	p := newProvider(t, refuses(400, "this model does not support image input", ""))
	m := openAIAt(t, p.URL, quick())
	failure(t, m, Request{Messages: []Message{user("hi")}})
	is.Equal(p.count(), 1)
	is.True(m.taken().Pictures)
}
