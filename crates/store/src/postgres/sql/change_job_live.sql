-- change_job: from now on the ends of its runs may mean something to the job.
UPDATE live SET exclusive = true WHERE job = $1 AND NOT exclusive
