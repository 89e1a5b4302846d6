package handlers

import "slices"

// families returns the description of each metric, in the order in which they are shown. The
// names follow the conventions of Prometheus: promtool finds nothing to correct.
func families() []family {
	return slices.Concat(workFamilies(), messageFamilies(), serverFamilies(), nodeFamilies(), storeFamilies(),
		backupFamilies(), processFamilies())
}

// workFamilies describes turns, steps and calls.
func workFamilies() []family {
	return []family{
		{"journeyman_turns_running", "gauge", "Turns that are executed now."},
		{"journeyman_turns_queued", "gauge", "Turns that wait in the queue."},
		{"journeyman_turns_queue_age_seconds", "gauge",
			"Time since the oldest turn in the queue was accepted, 0 if the queue is empty."},
		{"journeyman_turns_waiting", "gauge", "Turns that are suspended, by what they wait for."},
		{"journeyman_turns_total", "counter", "Turns that have ended, by status."},
		{"journeyman_steps_total", "counter", "Steps that are in the journal."},
		{"journeyman_step_duration_seconds", "histogram",
			"Duration of steps: a model call with its retries, and its tool calls."},
		{"journeyman_model_call_duration_seconds", "histogram",
			"Duration of model calls, each try by itself, by kind of provider and result."},
		{"journeyman_model_failures_total", "counter", "Failed model calls, by kind of provider and code."},
		{"journeyman_model_retries_total", "counter", "Model calls that were made again after a failure."},
		{"journeyman_tool_call_duration_seconds", "histogram",
			"Duration of tool calls by result; the tools of all MCP servers count as mcp."},
		{"journeyman_tokens_total", "counter", "Tokens that providers have counted, by direction."},
		{"journeyman_credits_total", "counter", "Credits that turns have spent."},
	}
}

// messageFamilies describes webhook deliveries and mail.
func messageFamilies() []family {
	return []family{
		{"journeyman_deliveries_pending", "gauge",
			"Webhook deliveries that have not arrived yet, counted up to 10000."},
		{"journeyman_deliveries_age_seconds", "gauge",
			"Age of the oldest pending webhook delivery, 0 if none is pending."},
		{"journeyman_webhook_attempts_total", "counter", "Attempts to deliver to a webhook, by result."},
		{"journeyman_emails_received_total", "counter",
			"Mails received, once for each worker addressed, by result."},
		{"journeyman_emails_refused_total", "counter", "Recipients and mails that the SMTP server has refused."},
		{"journeyman_emails_held", "gauge", "Mails that wait for an Admin, counted up to 10000."},
		{"journeyman_emails_held_age_seconds", "gauge", "Age of the oldest mail that waits for an Admin, 0 if none waits."},
		{"journeyman_emails_queued", "gauge", "Mails that wait to be sent, counted up to 10000."},
		{"journeyman_emails_age_seconds", "gauge", "Age of the oldest mail that waits to be sent, 0 if none waits."},
		{"journeyman_emails_sent_total", "counter",
			"Attempts to send a mail, by result; retry means that it is tried again."},
	}
}

// serverFamilies describes requests, streams and schedules.
func serverFamilies() []family {
	return []family{
		{"journeyman_build_info", "gauge", "1, with the version of the program."},
		{"journeyman_scheduler_lag_seconds", "gauge", "Time by which the next due schedule is late."},
		{"journeyman_streams_open", "gauge", "Event streams that clients read."},
		{"journeyman_http_requests_total", "counter", "Requests, by method, route and status."},
		{"journeyman_http_request_duration_seconds", "summary", "Duration of requests, by method and route."},
		{"journeyman_document_readers_running", "gauge", "Confined processes that read documents now."},
		{"journeyman_document_readers_waiting", "gauge", "Documents that wait for a process that reads them."},
	}
}

// nodeFamilies describes servers that share a database. A server that has its database alone shows none
// of them.
func nodeFamilies() []family {
	return []family{
		{"journeyman_nodes", "gauge", "Servers that share the database and have a lease."},
		{"journeyman_node_leader", "gauge",
			"1 if this node runs schedules, webhooks, replies and pruning for all nodes, else 0."},
		{"journeyman_node_workers", "gauge", "Workers that are placed on this node."},
		{"journeyman_node_lease_age_seconds", "gauge", "Time since this node last renewed its lease."},
		{"journeyman_node_lease_lost", "gauge", "1 while this node has no lease and runs no turns, else 0."},
		{"journeyman_node_clock_ahead_seconds", "gauge",
			"Time by which the clock of this node is ahead of that of the database."},
	}
}

// storeFamilies describes the database, the disk and the data folder.
func storeFamilies() []family {
	return []family{
		{"journeyman_database_free_bytes", "gauge", "Free pages of the database, which the next writes use."},
		{"journeyman_database_kind_bytes", "gauge",
			"What the database held when it was measured last, by kind; measured every 6 hours."},
		{"journeyman_files_bytes", "gauge", "Kept files at the last measurement."},
		{"journeyman_workspaces_bytes", "gauge", "Workspaces at the last measurement."},
		{"journeyman_tasks_pruned_total", "counter", "Tasks that were deleted because of their age."},
		{"journeyman_deliveries_pruned_total", "counter",
			"Webhook deliveries and executions that were deleted because of their age."},
		{"journeyman_space_returned_bytes_total", "counter", "Bytes that the database has returned to the disk."},
		{"journeyman_last_pruning_timestamp_seconds", "gauge", "When the last pruning ended, in Unix time."},
		{"journeyman_store_damaged", "gauge", "1 if the database is damaged, else 0."},
		{"journeyman_store_commits_total", "counter", "Transactions that the database has committed."},
		{"journeyman_store_operations_total", "counter", "Writes in these transactions."},
		{"journeyman_store_batch_operations", "histogram", "Writes of one transaction."},
		{"journeyman_store_write_duration_seconds", "histogram", "Time from the submission of a write to its answer."},
		{"journeyman_database_size_bytes", "gauge", "Size of the database file."},
		{"journeyman_database_wal_size_bytes", "gauge", "Size of the write-ahead log of the database."},
		{"journeyman_disk_level", "gauge", "0 if the disk has room, 1 below --disk-warning, 2 while no new work is taken."},
		{"journeyman_store_read_only", "gauge", "1 if the database accepts no writes now, else 0."},
		{"journeyman_store_read_only_reason", "gauge", "1 for each reason why the database accepts no writes now, else 0."},
		{"journeyman_disk_free_bytes", "gauge", "Free space on the disk of the data folder."},
		{"journeyman_disk_size_bytes", "gauge", "Size of the disk of the data folder."},
		{"journeyman_disk_warning_bytes", "gauge", "Free space below which the disk counts as low: --disk-warning."},
		{"journeyman_disk_reserve_bytes", "gauge", "Free space below which no new work is taken: --disk-reserve."},
	}
}

// backupFamilies describes backups.
func backupFamilies() []family {
	return []family{
		{"journeyman_backup_age_seconds", "gauge", "Time since the last complete backup; missing if there was none."},
		{"journeyman_backup_succeeded", "gauge",
			"1 if the last backup that the server made by itself was complete, 0 if it failed; missing if there was none."},
		{"journeyman_backup_success_timestamp_seconds", "gauge",
			"When the last complete backup ended, in Unix time; missing if there was none."},
		{"journeyman_backup_failure_timestamp_seconds", "gauge",
			"When a backup that the server made by itself failed last, in Unix time; missing if none did."},
		{"journeyman_backup_size_bytes", "gauge", "Size of the last complete backup that the server made by itself."},
		{"journeyman_backup_duration_seconds", "gauge",
			"Duration of the last complete backup that the server made by itself."},
	}
}

// processFamilies describes the process and Go's runtime.
func processFamilies() []family {
	return []family{
		{"go_info", "gauge", "1, with the version of Go."},
		{"go_goroutines", "gauge", "Goroutines."},
		{"go_threads", "gauge", "Threads of the system."},
		{"go_gomaxprocs", "gauge", "Processors that Go uses at once."},
		{"go_memlimit_bytes", "gauge", "Memory limit of the Go runtime."},
		{"go_gc_duration_seconds", "summary", "Pauses of the garbage collector."},
		{"go_gc_cpu_seconds_total", "counter", "Processor time of the garbage collector, as the runtime estimates it."},
		{"go_memstats_heap_alloc_bytes", "gauge", "Bytes of allocated heap objects."},
		{"go_memstats_heap_inuse_bytes", "gauge", "Bytes of heap spans in use."},
		{"go_memstats_heap_objects", "gauge", "Allocated heap objects."},
		{"go_memstats_stack_inuse_bytes", "gauge", "Bytes of stack spans in use."},
		{"go_memstats_sys_bytes", "gauge", "Memory that Go has from the system."},
		{"go_memstats_alloc_bytes_total", "counter", "Bytes allocated since the start."},
		{"process_start_time_seconds", "gauge", "Start of the process, in Unix time."},
		{"process_cpu_seconds_total", "counter", "Processor time of the process."},
		{"process_resident_memory_bytes", "gauge", "Resident memory of the process."},
		{"process_virtual_memory_bytes", "gauge", "Virtual memory of the process."},
		{"process_open_fds", "gauge", "Open file descriptors."},
		{"process_max_fds", "gauge", "Limit of open file descriptors."},
		{"process_io_storage_read_bytes_total", "counter", "Bytes that the process has read from disks."},
		{"process_io_storage_written_bytes_total", "counter", "Bytes that the process has written to disks."},
	}
}
