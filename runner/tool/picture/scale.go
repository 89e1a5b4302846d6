package picture

import (
	"image"
	"image/draw"
)

// Scale returns the part r of a picture with at most side pixels on each side. Each pixel of the result is the
// mean of the pixels that it covers. The kernels of golang.org/x/image/draw would need 32 bytes for each pixel of
// an intermediate picture, and their floating-point sums differ between processors.
func Scale(m image.Image, r image.Rectangle, side int) *image.RGBA {
	width, height := fitSides(r.Dx(), r.Dy(), side)
	out := image.NewRGBA(image.Rect(0, 0, width, height))
	if width == r.Dx() && height == r.Dy() {
		draw.Draw(out, out.Rect, m, r.Min, draw.Src)
		return out
	}
	s := &scaler{out: out, from: r.Size(), row: make([]uint64, 4*width), sums: make([]uint64, 4*width)}
	line := image.NewRGBA(image.Rect(0, 0, r.Dx(), 1))
	for y := range r.Dy() {
		clear(line.Pix) // a frame of a GIF covers only a part of the picture
		draw.Draw(line, line.Rect, m, r.Min.Add(image.Pt(0, y)), draw.Src)
		s.add(y, line.Pix)
	}
	return out
}

// fitSides returns the size of a picture that is reduced to at most side pixels on each side.
func fitSides(width, height, side int) (w, h int) {
	longest := max(width, height)
	if longest <= side {
		return width, height
	}
	part := func(n int) int { return max(1, (n*side+longest/2)/longest) }
	return part(width), part(height)
}

// A scaler computes the rows of a smaller picture from the rows of a larger one, from the first to the last. A source
// pixel is as wide as the result, and a pixel of the result is as wide as the source, in units that fit both. So all
// weights are integers.
type scaler struct {
	out  *image.RGBA
	from image.Point // size of the source
	row  []uint64    // the newest source row in the width of the result, weighted by columns
	sums []uint64    // the unfinished row of the result, weighted by columns and rows
}

// add adds the row y of the source.
func (s *scaler) add(y int, pix []byte) {
	height := s.out.Rect.Dy()
	s.squeeze(pix)
	begin, end := y*height, (y+1)*height
	for begin < end { // at most two rows of the result: it is not higher than the source
		target := begin / s.from.Y
		border := min((target+1)*s.from.Y, end)
		weight := uint64(border - begin)
		for i, v := range s.row {
			s.sums[i] += v * weight
		}
		if border == (target+1)*s.from.Y {
			s.finish(target)
		}
		begin = border
	}
}

// squeeze sets row to the sums of a source row.
func (s *scaler) squeeze(pix []byte) {
	clear(s.row)
	width := s.out.Rect.Dx()
	for x := range s.from.X {
		p := pix[4*x : 4*x+4]
		for begin, end := x*width, (x+1)*width; begin < end; {
			target := begin / s.from.X
			border := min((target+1)*s.from.X, end)
			weight := uint64(border - begin)
			sum := s.row[4*target : 4*target+4]
			for c := range sum {
				sum[c] += uint64(p[c]) * weight
			}
			begin = border
		}
	}
}

// finish writes the row y of the result.
func (s *scaler) finish(y int) {
	total := uint64(s.from.X) * uint64(s.from.Y)
	out := s.out.Pix[y*s.out.Stride:]
	for i, sum := range s.sums {
		out[i] = byte((sum + total/2) / total)
	}
	clear(s.sums)
}
