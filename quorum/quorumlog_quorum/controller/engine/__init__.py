"""Operations of the controller without a loop: their records, and what is pending."""
