"""What a study says, for people: an answer in words, and a page that shows it all."""
