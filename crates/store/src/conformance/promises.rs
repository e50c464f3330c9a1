//! The one list of promises.

/// Hands every promise, by group, to another macro: the one list there is.
#[macro_export]
macro_rules! conformance_promises {
    ($then:path, $with:expr) => {
        $then! { $with,
            presence {
                a_presence_sees_who_lives what_a_node_says_of_itself_is_what_others_hear
                the_shards_of_each_are_counted
                a_silent_presence_lives_until_it_is_fenced
                a_late_beat_is_as_good_as_any_unless_somebody_fenced
                a_fenced_presence_must_join_again
                a_presence_nobody_knows_is_fenced no_two_beats_have_one_mark
                a_silent_presence_is_fenced_once
                whoever_has_beaten_since_is_not_fenced
                an_outage_of_the_store_costs_nobody_a_presence
                a_step_of_the_wall_clock_ends_no_presence
                a_clock_that_went_back_leaves_no_claim_in_doubt
                leaving_twice_is_leaving_once
                orphans_are_the_claims_of_those_who_are_gone
                orphans_come_by_shard_and_at_most_as_many_as_requested
                claims_are_read_page_by_page
                opening_again_keeps_everything_but_presences
            }
            owners {
                jobs_are_listed_by_owner
                a_part_of_a_key_is_found_among_any_number_of_jobs_without_one
            }
            leases {
                a_shard_has_one_holder every_change_of_hands_raises_the_epoch
                a_lease_kept_keeps_its_epoch a_shard_not_wanted_is_given_up
                leases_of_one_that_left_are_free a_silent_holder_keeps_its_leases_until_it_is_fenced
                the_low_water_mark_of_a_shard_stays_with_it a_low_water_mark_of_before_a_change_of_hands_is_refused
            }
            level {
                a_level_is_raised_when_every_living_node_knows_it
                a_node_below_the_level_may_not_join a_level_that_was_raised_stays
            }
            access {
                a_key_reads_back_whole
                keys_are_listed_newest_first_page_by_page
                a_tenant_sees_only_its_own_keys
                changes_of_keys_are_seen_from_any_change_on
                a_key_created_again_is_the_same_key
                a_revoked_key_stays_revoked_as_it_was
                of_many_first_keys_one_is_made
                a_first_key_is_made_when_no_root_key_is_valid
                the_last_root_key_is_not_revoked
                the_last_use_of_a_key_never_moves_back
                a_tenant_has_so_many_keys_and_no_more
                opening_again_keeps_keys
                a_tenant_is_found_by_its_name_and_its_id tenants_are_listed_by_name
                a_key_belongs_to_a_tenant_that_is_there
                a_tenant_goes_when_it_has_no_valid_key
            }
            audit {
                every_change_of_a_job_is_entered_once
                what_changes_nothing_enters_nothing
                a_batch_of_jobs_is_entered_job_by_job
                an_entry_says_who_acted_and_no_secret
                changes_of_calendars_keys_and_tenants_are_entered
                changes_of_secrets_are_entered_without_their_values
                what_a_job_comes_to_by_itself_is_entered_for_the_system
                entries_are_read_in_both_directions_page_by_page
                a_tenant_is_shown_its_own_entries
                each_change_of_a_definition_keeps_the_one_before
                versions_are_their_tenants_and_go_with_their_job
                so_many_versions_of_a_job_are_kept_and_no_more
            }
            seals {
                a_seal_reads_back_whole_and_follows_the_last
                a_sealed_segment_goes_whole_and_the_last_stays
                what_is_in_no_segment_goes_by_its_age
            }
            users {
                a_user_reads_back_whole_with_all_its_tenants
                a_user_belongs_to_tenants_that_are_there
                another_password_ends_the_sessions_of_a_user
                a_session_is_used_moved_and_ended
                sessions_that_ended_are_forgotten_and_nobody_has_too_many
                a_link_opens_once_and_in_time
                changes_of_users_are_entered_with_each_of_their_tenants
            }
            secrets {
                a_secret_reads_back_whole
                a_secret_is_written_over_the_version_that_was_seen
                secrets_are_listed_by_name_page_by_page
                a_secret_that_was_dropped_is_gone
                a_proxy_is_kept_as_a_secret_and_entered_as_a_change_of_its_tenant
                every_change_of_a_secret_is_noticed
                secrets_under_another_master_key_are_rewrapped
                a_secret_belongs_to_a_tenant_that_is_there
                a_tenant_has_so_many_secrets_and_no_more
            }
            jobs {
                a_job_reads_back_whole
                nul_bytes_survive
                a_job_as_large_as_may_be_is_kept
                text_of_any_characters_is_kept
                a_job_that_cannot_be_kept_stops_no_other
                a_key_belongs_to_one_job_of_a_tenant
                a_key_is_taken_by_an_earlier_job_of_the_same_batch
                a_repeated_request_answers_the_same_job
                an_idempotency_key_with_another_body_is_a_mismatch
                an_idempotency_key_belongs_to_its_tenant
                a_repeated_create_makes_no_second_job
                a_refused_create_leaves_its_idempotency_key_free
                a_tenant_sees_only_its_own_jobs
                jobs_read_together_come_as_they_were_named
                jobs_are_listed_newest_first
                listing_pages_neither_repeat_nor_lose
                jobs_are_listed_by_state_label_and_part_of_the_key
            }
            changes {
                a_change_is_written_whole
                a_change_of_a_stale_read_is_a_conflict
                a_change_that_a_firing_overtook_is_a_conflict
                a_change_that_cannot_be_kept_changes_nothing
                a_change_of_a_job_that_is_gone_changes_nothing
                a_rename_takes_the_new_key_and_frees_the_old
                a_rename_to_a_key_in_use_changes_nothing
                a_deleted_job_is_gone_and_frees_its_key
                a_pause_says_who_and_why
                two_edits_within_a_lead_lose_no_slot
            }
            quotas {
                a_tenant_gets_no_more_than_its_quota
                a_tenant_over_its_quota_may_have_less
                what_a_tenant_uses_is_counted_with_every_write
                a_create_that_is_repeated_meets_no_quota
                quotas_are_edited_one_by_one
            }
            runs_day {
                a_slot_over_the_quota_is_skipped_and_the_job_moves_on
                a_slot_over_the_quota_waits_for_no_run
                a_job_that_rests_after_each_run_goes_on_over_the_quota
                every_node_learns_what_the_others_have_counted
                a_count_that_is_said_again_changes_nothing
                counts_of_days_before_yesterday_are_forgotten
            }
            sweep {
                a_tenant_that_is_deleted_opens_nothing
                a_tenant_goes_with_all_that_it_has
                a_tenant_stays_while_a_run_of_it_lives
                a_job_that_comes_late_goes_with_its_tenant
            }
            calendars {
                a_calendar_reads_back_whole
                a_calendar_is_written_over_the_version_named
                calendars_come_in_the_order_requested
                calendars_are_listed_by_name
                a_tenant_has_its_own_calendars
                a_calendar_counts_the_jobs_that_name_it
                a_tenant_has_so_many_calendars_and_no_more
                a_calendar_in_use_is_not_dropped
                a_calendar_that_no_job_names_any_more_can_be_dropped
                a_calendar_is_dropped_at_the_version_named
                a_job_is_read_with_its_calendars_as_they_are_now
                a_job_written_with_an_old_calendar_is_read_with_the_new
                what_calendars_leave_out_is_written_with_the_slot_after_it
                opening_again_keeps_calendars_and_what_is_to_be_applied
            }
            rules {
                a_new_calendar_is_not_changed
                a_changed_calendar_is_named_until_it_is_applied
                a_calendar_that_changed_again_stays_changed
                a_calendar_that_is_gone_is_not_changed
                each_tenants_calendar_changes_for_itself
                jobs_under_a_calendar_are_those_that_name_it
                a_job_rescheduled_goes_by_the_calendar_that_stands
                a_job_names_only_calendars_that_are_there
                a_job_written_by_an_older_calendar_is_to_be_rescheduled
                a_doubt_that_comes_while_jobs_are_rescheduled_stays
            }
            zones {
                a_zone_is_named_while_its_tables_are_others
                no_zone_is_applied_while_nodes_with_other_tables_live
                a_zone_that_was_in_doubt_again_while_it_was_applied_stays_changed
                an_edit_makes_a_zone_known_too
                jobs_under_a_zone_are_those_whose_slots_it_moves
                a_calendars_own_zone_moves_the_slots_of_its_jobs
            }
            plan {
                due_jobs_come_in_the_order_they_are_due
                due_pages_neither_repeat_nor_lose
                due_pages_of_some_shards_neither_repeat_nor_lose
                only_active_jobs_are_planned
                only_jobs_of_the_given_shards_are_planned
                spread_is_part_of_when_a_job_is_due
                due_runs_are_those_that_anyone_may_claim
                what_is_due_of_one_job_is_read_alone
                due_runs_come_in_the_order_they_are_due
                a_parked_job_leaves_the_plan_and_says_why
                a_schedule_that_cannot_be_read_is_named_and_not_planned
                a_schedule_that_cannot_be_read_stays_as_it_was_stored
                the_oldest_due_is_the_one_that_nobody_holds
                jobs_are_counted_by_state_page_by_page
            }
            failures {
                exactly_the_last_failure_pauses_and_says_why a_success_between_failures_begins_the_count_again
                a_resumed_job_counts_from_nothing of_overlapping_runs_that_fail_at_once_one_pauses
                an_edit_between_failures_loses_none a_bound_that_an_edit_brings_counts_the_runs_that_live
                what_is_fired_ahead_is_taken_back_with_the_pause a_job_without_the_bound_counts_nothing
                what_is_reported_as_failed_counts_as_well }
            fire {
                a_slot_fires_once
                a_repeated_fire_answers_the_same_run
                a_repeated_fire_answers_the_same_skip
                a_slot_whose_run_has_ended_never_fires_again
                a_run_of_another_version_is_not_the_answer_to_a_firing
                a_run_that_another_holds_is_stale
                a_lapsed_lease_fires_nothing
                an_old_epoch_fires_nothing
                a_fenced_presence_fires_nothing
                an_edited_job_is_stale
                a_paused_job_is_stale
                a_deleted_job_is_stale
                a_firing_moves_its_job_onward
                a_last_slot_finishes_its_job
                each_firing_of_a_batch_has_its_own_answer
                a_run_that_is_alive_already_is_refused_and_nothing_written
                a_decided_slot_of_an_edited_job_is_not_fired_again
                a_run_is_due_when_its_spread_says
            }
            skips {
                a_stretch_of_missed_slots_is_one_entry
                one_missed_slot_is_an_entry_of_its_own
                the_slot_that_catches_up_runs_beside_the_missed_entry
                every_skip_of_a_decision_is_kept_whole
                every_skip_of_a_change_is_kept_whole
                a_change_that_is_refused_explains_nothing
                the_end_of_a_pause_is_one_entry
                a_pause_that_is_to_catch_up_leaves_its_slots_to_be_decided
                a_long_pause_is_an_entry_for_each_day
                what_was_skipped_before_a_run_taken_back_is_decided_again
                a_skip_never_takes_the_place_of_a_run
            }
            bounds {
                runs_left_counts_down_with_every_run_that_is_inserted
                the_last_run_allowed_finishes_its_job
                a_repeated_fire_counts_once
                a_slot_that_makes_no_run_does_not_count
                a_run_by_hand_does_not_count
                a_run_taken_back_counts_again
                a_slot_that_was_decided_before_counts_once
                an_edit_counts_the_runs_that_were_made
                a_slot_at_the_very_end_is_the_last
                runs_made_are_remembered_under_a_lower_bound
            }
            overlap {
                a_job_that_allows_overlap_starts_every_slot
                an_overlapping_slot_is_skipped_with_its_reason
                a_run_in_backoff_counts_as_living
                a_queue_of_one_holds_one
                a_full_queue_skips_and_says_so
                a_waiting_run_is_freed_by_the_end_of_the_one_before
                waiting_runs_are_freed_one_by_one_from_the_oldest
                a_retry_frees_nobody
                a_newer_run_replaces_those_that_nobody_holds
                a_newer_run_waits_for_the_one_it_stops
                a_newer_run_replaces_those_that_wait
                a_cancelled_run_frees_the_one_that_waits
                a_run_taken_back_frees_the_one_that_waits
                a_run_withdrawn_frees_the_one_that_waits
                a_slot_in_the_way_of_another_is_not_skipped_before_it_is_due
                a_run_is_not_replaced_before_the_next_is_due
                a_slot_that_may_wait_or_start_is_decided_ahead
                a_slot_that_is_early_leaves_the_rest_of_its_batch_alone
                a_slot_that_was_early_starts_when_nothing_is_in_its_way_any_more
            }
            late {
                a_run_that_was_not_dispatched_by_then_is_no_overlap
                a_late_slot_runs_after_the_late_one_before_it
                a_late_slot_runs_after_a_run_that_waits_for_its_target
                a_run_that_counts_has_the_policy_decide
                a_run_that_counts_is_replaced_or_let_be
                a_run_that_started_late_is_given_as_much_longer
                a_run_that_ended_meanwhile_counts_for_skip_alone
                a_manual_run_that_came_and_ended_since_plan_counts
                missed_slots_run_one_after_another
                a_job_that_allows_overlap_catches_up_at_once
                so_many_late_slots_wait_and_no_more
                what_allows_overlap_waits_for_its_lane_alone
                what_a_pause_held_back_is_missed_or_late
                what_another_node_holds_counts_when_it_says_so
                what_another_node_has_not_marked_in_time_is_waited_for
                an_edit_that_allows_overlap_frees_what_waits
                a_run_keeps_its_first_dispatch_through_retries
                a_catch_up_is_counted_once
            }
            claim {
                a_run_is_claimed_once
                a_retry_claimed_long_before_it_is_due_is_due_now
                a_repeated_claim_answers_the_same
                a_claim_is_its_holders_wherever_its_shard_has_gone
                a_claim_takes_the_job_as_it_stands
                a_claim_without_its_lease_is_lost
                a_waiting_run_cannot_be_claimed
                a_run_that_is_not_there_is_stale
                a_retry_is_claimed_under_its_next_number
                a_run_under_way_is_marked_by_its_holder_only
                a_clock_that_went_back_unheard_leaves_no_claim_in_doubt
            }
            claim_due {
                the_earliest_are_claimed_first
                what_is_on_time_is_claimed_before_an_older_backlog
                each_lane_has_its_own_room
                a_run_is_claimed_once
                only_runs_of_the_given_shards_are_claimed
                what_is_due_later_is_not_claimed
                runs_that_wait_or_are_held_are_not_claimed
                a_fenced_presence_claims_nothing
                what_is_claimed_is_an_attempt_at_the_job_as_it_stands
                retries_are_claimed_under_their_next_number
                whoever_claims_a_run_settles_it
            }
            payloads {
                plan_and_claims_leave_large_payloads_in_the_store
                a_payload_is_read_at_the_version_it_belongs_to
                a_large_payload_of_a_run_stays_with_it
            }
            alerts {
                an_alert_rule_reads_back_whole
                so_many_alert_rules_are_there_and_no_more
                an_end_is_noted_as_long_as_a_rule_may_be_about_it
                an_alert_is_moved_over_the_step_before_it
                moves_are_written_together_or_not_at_all
                alerts_are_due_in_the_order_of_their_moments
                a_delivery_is_inserted_with_the_move_or_not_at_all
                an_alert_has_recovered_when_a_later_run_has_succeeded
            }
            replays {
                a_replay_reads_back_whole
                progress_is_written_over_the_step_before_it
                a_cancelled_replay_goes_no_further
                so_many_replays_of_a_tenant_are_under_way_and_no_more
                replays_that_ended_are_forgotten_in_time
                a_queued_run_is_started_once
                queued_runs_wait_for_one_another_up_to_a_bound
                a_slot_that_was_skipped_runs_under_its_own_name
                a_slot_that_ran_is_replayed_and_stays_as_it_was
                a_slot_that_is_not_decided_is_left_to_fire
                what_another_schedule_counted_is_not_divided
            }
            start {
                a_manual_run_is_inserted_ready_with_its_own_payload
                a_run_keeps_the_trace_that_it_was_started_with
                a_run_is_started_once
                a_job_that_is_gone_starts_nothing
                a_paused_job_runs_by_hand
                a_manual_run_obeys_overlap_unless_forced
                a_manual_run_waits_its_turn
                a_manual_run_replaces_like_any_other
            }
            withdraw {
                a_taken_back_run_is_decided_again
                a_run_ahead_that_nobody_holds_goes_back_with_the_edit
                runs_go_back_in_any_order
                what_is_past_or_by_hand_or_retried_is_not_taken_back
                a_run_more_than_a_lead_ahead_is_not_taken_back
                a_run_that_had_left_is_too_late
                only_the_holder_answers_for_a_run
                a_fenced_presence_withdraws_nothing
                a_paused_slot_goes_back_to_the_pause
                a_deleted_job_cancels_its_runs
                a_marked_run_of_a_deleted_job_ends_when_its_holder_says
                a_run_that_nobody_holds_is_cancelled_at_once
                a_held_run_is_marked_to_be_cancelled
                a_cancel_is_never_weakened_to_a_take_back
                an_ended_run_cannot_be_cancelled
                a_tenant_cancels_only_its_own_runs
                what_ran_before_a_slot_that_comes_back_stays
                what_ran_among_slots_that_come_back_stays
                an_edit_decides_its_own_slots_around_those_that_ran
            }
            settle {
                a_settled_run_is_history
                a_repeated_settle_is_stale
                every_verdict_is_kept_with_its_reason
                a_claim_token_of_an_earlier_attempt_settles_nothing
                a_run_that_nobody_holds_cannot_be_settled
                a_fenced_presence_settles_nothing
                a_claim_of_the_living_is_settled_by_its_holder_only
                a_lost_claim_is_settled_by_another
                a_retry_waits_for_its_time
                a_run_keeps_when_it_was_first_dispatched
                an_earlier_attempt_keeps_the_head_of_its_output
                attempts_keep_what_is_known_of_their_exchange
                attempts_keep_their_node_and_their_marks
                a_run_to_be_cancelled_is_not_tried_again
                a_released_run_keeps_its_number
                a_released_retry_is_still_a_retry
                a_released_run_that_was_to_be_cancelled_ends
                a_released_run_that_was_marked_is_decided_again
                each_settlement_of_a_batch_has_its_own_answer
            }
            waits {
                a_run_that_waits_has_no_holder_and_is_due_nowhere
                a_run_is_woken_when_its_wait_is_over_and_keeps_its_number
                named_runs_are_woken_at_once_and_those_that_do_not_wait_stay
                a_client_wakes_its_own_runs_and_learns_why_not
                a_run_that_waits_is_alive_to_overlap
                a_run_that_waits_is_cancelled_and_marks_that_it_had_are_followed
                an_edit_of_the_target_wakes_and_any_other_does_not
                runs_are_listed_by_what_they_wait_for
            }
            handed {
                a_handed_over_run_has_nobody_who_ends
                a_hand_over_is_written_once_and_by_its_holder
                a_heartbeat_moves_the_moment
                a_heartbeat_before_the_hand_over_is_the_hand_over
                a_report_ends_the_attempt_and_is_answered_again
                a_report_before_the_hand_over_is_the_hand_over
                a_token_is_good_for_the_current_attempt_only
                silence_ends_an_attempt_unless_it_was_heard_of
                what_lapses_is_found_by_shard_the_earliest_first
                what_may_not_end_yet_hides_nothing_that_lapses
                only_who_holds_the_shard_ends_what_is_silent
                a_cancel_is_announced_with_the_next_heartbeat
                a_deleted_job_cancels_what_is_handed_over
                a_pause_and_an_edit_leave_alone_what_is_handed_over
            }
            handed_kept {
                only_the_attempt_that_somebody_holds_is_current
                a_checkpoint_stays_for_the_next_attempt
                a_run_is_somebodys_as_long_as_it_lives
                a_log_keeps_its_head_and_its_tail
                keys_of_tokens_read_back_whole
                opening_again_keeps_what_is_handed_over
                what_is_kept_of_runs_that_are_over_goes
            }
            completion {
                a_job_rests_while_its_run_lives
                every_verdict_that_ends_a_run_wakes_its_job
                each_end_of_a_batch_wakes_its_own_job
                a_retry_wakes_nobody
                a_run_that_nobody_holds_wakes_its_job_when_it_is_cancelled
                a_held_run_wakes_its_job_when_its_holder_ends_it
                a_lost_run_that_is_buried_wakes_its_job
                a_run_taken_back_leaves_its_slot_to_be_decided_again
                a_run_that_is_replaced_by_hand_wakes_its_job
                a_held_run_that_is_replaced_wakes_its_job_at_its_end
                the_end_of_a_run_by_hand_wakes_nobody
                a_slot_skipped_by_overlap_goes_on_from_the_slot
            }
            rest {
                an_edit_leaves_a_job_resting_while_its_run_lives
                an_edit_of_anything_else_leaves_a_job_resting
                an_edit_to_another_kind_of_schedule_ends_the_rest
                an_edit_to_one_that_rests_waits_for_all_that_live
                a_run_taken_back_beside_another_leaves_the_job_resting
                a_slot_taken_back_that_bounds_leave_out_is_not_decided
                a_pause_outlasts_the_end_of_the_run
                a_resumed_job_rests_while_its_run_lives
                a_parked_job_is_not_woken a_deleted_job_is_not_woken a_finished_job_is_not_woken
                an_end_beyond_the_bounds_finishes_the_job
                a_change_that_the_end_of_a_run_overtook_is_a_conflict
                opening_again_keeps_a_job_resting
            }
            history {
                runs_read_together_come_as_they_were_named
                live_and_ended_runs_are_one_list
                run_pages_neither_repeat_nor_lose
                runs_are_listed_by_job_and_by_state runs_are_listed_by_when_they_were_due
                a_tenant_reads_only_its_own_runs
            }
            slots {
                slots_come_oldest_first_whatever_came_of_them
                a_range_of_slots_has_its_beginning_and_not_its_end
                so_many_slots_are_listed_as_were_requested
                a_stretch_is_listed_where_it_covers_the_beginning
                a_stretch_that_began_days_before_is_found
                slots_of_many_days_are_one_list
                runs_by_hand_are_no_slots slots_are_listed_to_their_tenant_job_by_job
                a_slot_decided_again_is_listed_once
                slots_taken_back_and_forgotten_are_not_listed
            }
            overview {
                rollups_of_all_nodes_are_added_up_and_written_over
                planned_jobs_of_a_tenant_are_listed_in_pages_and_sampled
                rollups_go_with_their_tenant_and_when_kept_long_enough
                what_lives_and_what_is_not_active_is_counted
            }
            retention {
                history_is_dropped_by_whole_partitions
                a_run_that_lives_long_keeps_no_history
                a_straggler_keeps_its_partition
                opening_again_keeps_a_stragglers_partition
                a_finished_job_stays_as_long_as_it_should
                a_deleted_job_stays_until_its_runs_have_ended
                a_job_removed_frees_its_key
                retention_works_in_bounded_steps
                an_idempotency_key_is_forgotten_after_a_day
                what_was_skipped_stays_from_when_it_was_written
            }
        }
    };
}
