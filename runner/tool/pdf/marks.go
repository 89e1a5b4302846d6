package pdf

import (
	"fmt"

	"github.com/klippa-app/go-pdfium/enums"
	"github.com/klippa-app/go-pdfium/references"
	"github.com/klippa-app/go-pdfium/requests"
	"github.com/klippa-app/go-pdfium/structs"
)

// openForm makes the fields of a form readable, if there are some. Without them, the text has no fields.
func (d *document) openForm() {
	kind, err := d.pdfium.FPDF_GetFormType(&requests.FPDF_GetFormType{Document: d.ref})
	if err != nil || kind.FormType == enums.FPDF_FORMTYPE_NONE {
		return
	}
	// PDFium calls these functions when a person edits a form, which nobody does here.
	form, err := d.pdfium.FPDFDOC_InitFormFillEnvironment(&requests.FPDFDOC_InitFormFillEnvironment{Document: d.ref,
		FormFillInfo: structs.FPDF_FORMFILLINFO{
			FFI_Invalidate:         func(references.FPDF_PAGE, float64, float64, float64, float64) {},
			FFI_SetCursor:          func(enums.FXCT) {},
			FFI_SetTimer:           func(int, func(int)) int { return 0 },
			FFI_KillTimer:          func(int) {},
			FFI_GetLocalTime:       func() (t structs.FPDF_SYSTEMTIME) { return t },
			FFI_GetPage:            func(references.FPDF_DOCUMENT, int) *references.FPDF_PAGE { return nil },
			FFI_GetRotation:        func(references.FPDF_PAGE) enums.FPDF_PAGE_ROTATION { return 0 },
			FFI_ExecuteNamedAction: func(string) {},
		}})
	if err == nil {
		d.form = form.FormHandle
	}
}

// marks returns a line for each field of a form and for each comment on a page.
func (d *document) marks(p requests.Page) (lines []string) {
	count, err := d.pdfium.FPDFPage_GetAnnotCount(&requests.FPDFPage_GetAnnotCount{Page: p})
	if err != nil {
		return nil
	}
	for i := range min(count.Count, maxMarks) {
		a, err := d.pdfium.FPDFPage_GetAnnot(&requests.FPDFPage_GetAnnot{Page: p, Index: i})
		if err != nil {
			continue
		}
		if line := d.mark(a.Annotation); line != "" {
			lines = append(lines, line)
		}
		_, _ = d.pdfium.FPDFPage_CloseAnnot(&requests.FPDFPage_CloseAnnot{Annotation: a.Annotation})
	}
	if count.Count > maxMarks {
		lines = append(lines, fmt.Sprintf("[%d more fields and comments are left out]", count.Count-maxMarks))
	}
	return lines
}

// mark returns the line for a field or a comment, "" for anything else.
func (d *document) mark(a references.FPDF_ANNOTATION) string {
	flags, err := d.pdfium.FPDFAnnot_GetFlags(&requests.FPDFAnnot_GetFlags{Annotation: a})
	if err != nil || flags.Flags&(enums.FPDF_ANNOT_FLAG_HIDDEN|enums.FPDF_ANNOT_FLAG_NOVIEW) != 0 {
		return ""
	}
	kind, err := d.pdfium.FPDFAnnot_GetSubtype(&requests.FPDFAnnot_GetSubtype{Annotation: a})
	if err != nil {
		return ""
	}
	switch kind.Subtype {
	case enums.FPDF_ANNOT_SUBTYPE_LINK, enums.FPDF_ANNOT_SUBTYPE_POPUP:
		return ""
	case enums.FPDF_ANNOT_SUBTYPE_WIDGET:
		return d.field(a)
	}
	text := d.value(a, "Contents")
	if text == "" {
		return ""
	}
	switch author := d.value(a, "T"); {
	case kind.Subtype == enums.FPDF_ANNOT_SUBTYPE_FREETEXT && author == "":
		return fmt.Sprintf("[text on the page: %q]", text)
	case author == "":
		return fmt.Sprintf("[comment: %q]", text)
	default:
		return fmt.Sprintf("[comment of %s: %q]", author, text)
	}
}

// value returns a text of an annotation.
func (d *document) value(a references.FPDF_ANNOTATION, key string) string {
	v, err := d.pdfium.FPDFAnnot_GetStringValue(&requests.FPDFAnnot_GetStringValue{Annotation: a, Key: key})
	if err != nil {
		return ""
	}
	return oneLine(v.Value, maxValue)
}

// field returns the line for a field of a form. A group of which one button is pressed has a line for that button.
func (d *document) field(a references.FPDF_ANNOTATION) string {
	if d.form == "" {
		return ""
	}
	kind, err := d.pdfium.FPDFAnnot_GetFormFieldType(
		&requests.FPDFAnnot_GetFormFieldType{FormHandle: d.form, Annotation: a})
	if err != nil {
		return ""
	}
	name := d.fieldName(a)
	switch kind.FormFieldType {
	case enums.FPDF_FORMFIELD_TYPE_PUSHBUTTON, enums.FPDF_FORMFIELD_TYPE_UNKNOWN:
		return ""
	case enums.FPDF_FORMFIELD_TYPE_SIGNATURE:
		return fmt.Sprintf("[field %q: a signature]", name)
	case enums.FPDF_FORMFIELD_TYPE_CHECKBOX, enums.FPDF_FORMFIELD_TYPE_XFA_CHECKBOX:
		if d.checked(a) {
			return fmt.Sprintf("[field %q: checked]", name)
		}
		return fmt.Sprintf("[field %q: not checked]", name)
	case enums.FPDF_FORMFIELD_TYPE_RADIOBUTTON:
		if !d.checked(a) {
			return ""
		}
		v, err := d.pdfium.FPDFAnnot_GetFormFieldExportValue(
			&requests.FPDFAnnot_GetFormFieldExportValue{FormHandle: d.form, Annotation: a})
		if err != nil {
			return ""
		}
		return fmt.Sprintf("[field %q: %q]", name, oneLine(v.Value, maxValue))
	}
	v, err := d.pdfium.FPDFAnnot_GetFormFieldValue(
		&requests.FPDFAnnot_GetFormFieldValue{FormHandle: d.form, Annotation: a})
	if err != nil {
		return ""
	}
	if v.FormFieldValue == "" {
		return fmt.Sprintf("[field %q: empty]", name)
	}
	return fmt.Sprintf("[field %q: %q]", name, oneLine(v.FormFieldValue, maxValue))
}

// fieldName returns the name of a field for people, or else its technical name.
func (d *document) fieldName(a references.FPDF_ANNOTATION) string {
	n, err := d.pdfium.FPDFAnnot_GetFormFieldAlternateName(
		&requests.FPDFAnnot_GetFormFieldAlternateName{FormHandle: d.form, Annotation: a})
	if err == nil && n.FormFieldAlternateName != "" {
		return oneLine(n.FormFieldAlternateName, maxLabel)
	}
	name, err := d.pdfium.FPDFAnnot_GetFormFieldName(
		&requests.FPDFAnnot_GetFormFieldName{FormHandle: d.form, Annotation: a})
	if err != nil {
		return ""
	}
	return oneLine(name.FormFieldName, maxLabel)
}

// checked reports whether a check box or a button of a group is set. Its appearance is what a person sees.
func (d *document) checked(a references.FPDF_ANNOTATION) bool {
	if state := d.value(a, "AS"); state != "" {
		return state != "Off"
	}
	c, err := d.pdfium.FPDFAnnot_IsChecked(&requests.FPDFAnnot_IsChecked{FormHandle: d.form, Annotation: a})
	return err == nil && c.IsChecked
}
