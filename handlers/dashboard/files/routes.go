package files

// Routes registers the pages.
func (d *Pages) Routes() {
	d.On("GET", "/workers/:workerId/files", d.OfWorker("files", d.listFiles))
	d.On("GET", "/workers/:workerId/preview/*filePath", d.OfWorker("files", d.previewFile))
	d.On("GET", "/workers/:workerId/files.zip", d.OfWorker("files", d.zipWorkerFiles))
	d.On("GET", "/workers/:workerId/workspace/*path", d.OfWorker("files", d.browse))
	d.On("GET", "/workers/:workerId/workspace-file/*path", d.sendWorkspaceFile)
	d.On("GET", "/workers/:workerId/workspace-zip/*path", d.zipWorkspace)
	d.On("GET", "/tasks/:taskId/files.zip", d.zipTaskFiles)
}
