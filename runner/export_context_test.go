package runner

// CutMessages is how the outputs and arguments of tools are told shorter.
var CutMessages = cutMessages
