package tool

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"

	"journeyman/runner/sandbox"
	"journeyman/runner/tool/picture"
)

// MaxImages is the maximum number of images in the result of a call.
const MaxImages = 5

// pictureFilter is the name of the filter that runs fitPicture.
const pictureFilter = "picture"

// A Picture is a picture in a form that all providers of models take.
type Picture = picture.Fitted

// MaxPictureSource limits the bytes of a file that Documents.Picture reads.
const MaxPictureSource = picture.MaxSource

// A pictureAnswer is the first line of the output of fitPicture. The picture follows.
type pictureAnswer struct {
	Picture
	Needed int `json:"needed,omitempty"` // MiB, if the memory is not enough; then no picture follows
}

// fitPicture is the filter for pictures. Its input is a line with the memory for the decoded picture, in MiB, and
// the file.
func fitPicture(in []byte) ([]byte, error) {
	line, data, _ := bytes.Cut(in, []byte("\n"))
	room, err := strconv.Atoi(string(line))
	if err != nil {
		return nil, fmt.Errorf("read the memory of a picture: %w", err)
	}
	fitted, err := picture.Fit(data, room)
	answer := pictureAnswer{Picture: fitted}
	if larger, ok := errors.AsType[*picture.RoomError](err); ok {
		answer, err = pictureAnswer{Needed: larger.Needed}, nil
	}
	if err != nil {
		return nil, err
	}
	head, err := json.Marshal(answer)
	return append(append(head, '\n'), fitted.Data...), err
}

// PictureTooLarge returns the reason why a file of size bytes is not read.
func PictureTooLarge(size int64) error {
	return Errorf("it has %d bytes, and pictures of up to %d bytes can be read: make it smaller", size, MaxPictureSource)
}

// Picture returns a picture in the form that providers take: upright, with at most picture.MaxSide pixels a side and
// picture.MaxBytes. It returns an *Error with the reason for a file that is no such picture. The reason's subject is
// "it". Equal files give equal pictures.
func (d Documents) Picture(ctx context.Context, data []byte) (Picture, error) {
	if len(data) > MaxPictureSource {
		return Picture{}, PictureTooLarge(int64(len(data)))
	}
	// Most pictures are small. The first process reads how much memory a large one needs.
	answer, err := d.fit(ctx, data, picture.Room)
	if err == nil && answer.Needed > 0 {
		answer, err = d.fit(ctx, data, answer.Needed)
	}
	if fe, ok := errors.AsType[*sandbox.FilterError](err); ok {
		return Picture{}, Errorf("%s", fe.Message)
	}
	if err == nil && len(answer.Data) == 0 {
		err = errors.New("fit a picture: the process returned none")
	}
	return answer.Picture, err
}

// fit runs fitPicture in a process with room MiB for the decoded picture.
func (d Documents) fit(ctx context.Context, data []byte, room int) (answer pictureAnswer, err error) {
	line := append(strconv.AppendInt(nil, int64(room), 10), '\n')
	out, err := d.pool.RunLarge(ctx, pictureFilter, room-picture.Room, line, data)
	if err != nil {
		return answer, err
	}
	head, fitted, _ := bytes.Cut(out, []byte("\n"))
	if err := json.Unmarshal(head, &answer); err != nil {
		return answer, fmt.Errorf("read the answer about a picture: %w", err)
	}
	answer.Data = fitted
	return answer, nil
}
