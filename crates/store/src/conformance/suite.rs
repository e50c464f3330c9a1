//! The promises as tests.

/// One test per promise. The argument makes a fresh [`Subject`]: `async || Subject::mem().await`.
#[macro_export]
macro_rules! conformance_suite {
    ($subject:expr) => {
        $crate::conformance_promises!($crate::conformance_tests, $subject);
    };
}

#[doc(hidden)]
#[macro_export]
macro_rules! conformance_tests {
    ($subject:expr, $($group:ident { $($promise:ident)* })*) => {
        $(
            mod $group {
                use super::*;
                $(
                    #[tokio::test]
                    async fn $promise() -> $crate::conformance::Kept {
                        let subject = ($subject)().await?;
                        $crate::conformance::$group::$promise(subject).await
                    }
                )*
            }
        )*
    };
}
