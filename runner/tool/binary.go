package tool

import (
	"bytes"
	"path"
	"strings"

	"journeyman/runner/workspace"
)

// binaryExtension returns the extension of a path if files with it cannot be text, such as ".png". Otherwise it
// returns "".
func binaryExtension(name string) string {
	mediaType := workspace.MediaType(name, nil)
	switch mediaType {
	case "application/rtf", "message/rfc822": // text, although their names do not show it
		return ""
	}
	if isReadable(mediaType) || strings.HasSuffix(mediaType, "-flat-xml") { // also for an unknown extension
		return ""
	}
	return strings.ToLower(path.Ext(name))
}

// contradiction returns how the contents of a file contradict its extension, or "". Programs could not open such a
// file.
func contradiction(name string, data []byte) string {
	ext := binaryExtension(name)
	head := data[:min(len(data), headSize)]
	switch {
	case ext == "":
		return ""
	case len(data) == 0:
		return "no program can open an empty file as " + ext
	// Word opens RTF with this extension.
	case ext == ".doc" && bytes.HasPrefix(head, []byte(`{\rtf`)):
		return ""
	case encodingOf(head) != "":
		return "no program can open plain text as " + ext
	}
	return ""
}

// instead returns what a model can do that wants to write text to a file with a binary extension.
func instead(ext string) string {
	const shell = "a program that the tool shell runs can make it, if there is this tool"
	switch ext {
	case ".doc", ".docm", ".dotx", ".odt", ".ott", ".epub":
		return "write .docx or .pdf instead, both of Markdown; or " + shell
	case ".xls", ".xlsm", ".xlsb", ".ods":
		return "write .xlsx instead, of CSV or JSON rows; or " + shell
	case ".ppt", ".pptx", ".pptm", ".pps", ".ppsx", ".potx", ".odp":
		return "write .pdf or .docx instead, both of Markdown; or " + shell
	case ".png", ".jpg", ".jpeg", ".gif", ".webp", ".bmp", ".tif", ".tiff", ".avif", ".heic", ".ico":
		return "write .svg instead, which is text, or make a .png of numbers with make_chart; or " + shell
	}
	return shell
}
